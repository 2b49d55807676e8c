"""Starts the policy node for a DROID station (Franka Panda, two cameras), with the parameters of config/droid.yaml.

    ros2 launch gr00t_blackhole droid.launch.py snapshot:=/path/to/GR00T-N1.7-3B

Takes every argument of policy.launch.py; a copy of config/droid.yaml with the robot's own names goes in by `params_file`.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare


def generate_launch_description():
    share = FindPackageShare('gr00t_blackhole')
    params_file = DeclareLaunchArgument(
        'params_file',
        default_value=PathJoinSubstitution([share, 'config', 'droid.yaml']),
        description='Parameter file of the robot: cameras, joints, poses, limits.',
    )
    # The other arguments reach the included file by themselves: it looks them up in the same launch context.
    policy = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(PathJoinSubstitution([share, 'launch', 'policy.launch.py'])),
        launch_arguments={'params_file': LaunchConfiguration('params_file')}.items(),
    )
    return LaunchDescription([params_file, policy])
