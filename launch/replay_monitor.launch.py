"""Starts the policy node on a recording, in the recording's own time, with what is needed to watch it.

    ros2 launch gr00t_blackhole replay_monitor.launch.py bag:=/path/to/bag rqt:=true plotjuggler:=true \\
        params_file:=/path/to/robot.yaml snapshot:=/path/to/GR00T-N1.6-3B instruction:='pick the pear'

Takes every argument of policy.launch.py. Without `bag` the node waits for the /clock of a bag that is played elsewhere:
`ros2 bag play --clock BAG`. The windows show the topics of a node that is called /policy.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

# Name, default, description.
ARGUMENTS = (
    ('bag', '', 'Recording that is played with its clock; empty to play one elsewhere.'),
    ('bag_rate', '1.0', 'Recorded seconds per second.'),
    ('rqt', 'false', 'Open rqt with plots, the picture that the policy sees, diagnostics and the log: true or false.'),
    ('plotjuggler', 'false', 'Open PlotJuggler with timings and joint positions: true or false.'),
    ('use_sim_time', 'true', 'Take the time from /clock, as a recording needs it: true or false.'),
)


def play_bag(context):
    bag = LaunchConfiguration('bag').perform(context)
    if not bag:
        return []
    rate = LaunchConfiguration('bag_rate')
    return [ExecuteProcess(cmd=['ros2', 'bag', 'play', '--clock', '--rate', rate, bag], output='screen')]


def generate_launch_description():
    share = FindPackageShare('gr00t_blackhole')
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description in ARGUMENTS
    ]
    policy = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(PathJoinSubstitution([share, 'launch', 'policy.launch.py'])),
        launch_arguments={'use_sim_time': LaunchConfiguration('use_sim_time')}.items(),
    )
    rqt = Node(
        package='rqt_gui',
        executable='rqt_gui',
        arguments=['--perspective-file', PathJoinSubstitution([share, 'config', 'gr00t_blackhole.perspective'])],
        # The robot monitor reads an aggregator's topic; the node's own diagnostics need none.
        remappings=[('/diagnostics_agg', '/diagnostics')],
        condition=IfCondition(LaunchConfiguration('rqt')),
    )
    plotjuggler = Node(
        package='plotjuggler',
        executable='plotjuggler',
        arguments=['--layout', PathJoinSubstitution([share, 'config', 'plotjuggler.xml'])],
        condition=IfCondition(LaunchConfiguration('plotjuggler')),
    )
    return LaunchDescription([*arguments, policy, OpaqueFunction(function=play_bag), rqt, plotjuggler])
