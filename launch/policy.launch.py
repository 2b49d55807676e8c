"""Starts the policy node: from cameras, joint states, poses and transforms to action chunks.

    ros2 launch gr00t_blackhole policy.launch.py params_file:=/path/to/robot.yaml snapshot:=/path/to/GR00T-N1.6-3B

An argument that is given overrides the parameter file; one that is left empty leaves to the file, or to the node's own
default, what the parameter is. `ros2 launch gr00t_blackhole policy.launch.py --show-args` lists them all.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

# Arguments that stand for a parameter of the node: name, type, description.
PARAMETERS = (
    ('snapshot', str, 'Snapshot directory of the checkpoint; empty for the released one of version in the hub cache.'),
    ('tokenizer', str, 'Directory of the tokenizer files, where they are not in the snapshot.'),
    ('version', str, "Model version: n15, n16, n17, or auto to take it from the checkpoint."),
    ('embodiment', str, "The checkpoint's tag of the robot, such as gr1."),
    ('data_config', str, 'Data config, n15 only, where it is not the usual one of the robot.'),
    ('letterbox', str, 'Whether frames are padded to squares, n17 only: on, off, or auto for what the checkpoint declares.'),
    ('backend', str, 'What computes the chunks: cpu, blackhole (a Tenstorrent card) or sim (a simulator of one).'),
    ('instruction', str, 'What the robot is to do from the start on.'),
    ('seed', int, "Seed of the initial noise; -1 for the model version's own."),
    ('pose_frame', str, 'Frame of the poses of chunks, where no state group says it.'),
    ('rate_hz', float, 'Predictions per second that the timer aims at [Hz]; 0 for no timer.'),
    ('use_sim_time', bool, 'Take the time from /clock: true or false.'),
    ('autostart', bool, 'Configure and activate at once: true; or wait for lifecycle calls: false.'),
)

# The other arguments: name, default, description.
SETTINGS = (
    ('params_file', '', "Parameter file of the robot: cameras, joints, poses, limits. See config/default.yaml."),
    ('namespace', '', 'Namespace of the node and of its relative topics.'),
    ('name', 'policy', 'Name of the node.'),
    ('log_level', 'info', 'Least severity that is logged: error, warn, info, debug or trace.'),
    ('log_format', 'text', 'Form of the log: text for people, json for machines.'),
)

# The values that an argument is limited to.
CHOICES = {'log_level': ['error', 'warn', 'info', 'debug', 'trace'], 'log_format': ['text', 'json']}


def parameter_overrides(context):
    """The parameters that were given as launch arguments."""
    overrides = {}
    for name, kind, _ in PARAMETERS:
        argument = LaunchConfiguration(name)
        if argument.perform(context):
            # With its type stated, an instruction such as "yes" or "place: left" stays text.
            overrides[name] = ParameterValue(argument, value_type=kind)
    return overrides


def policy_node(context):
    setting = {name: LaunchConfiguration(name).perform(context) for name, _, _ in SETTINGS}
    parameters = [setting['params_file']] if setting['params_file'] else []
    overrides = parameter_overrides(context)
    if overrides:
        parameters.append(overrides)
    return [
        Node(
            package='gr00t_blackhole',
            executable='gr00t_blackhole',
            name=setting['name'],
            namespace=setting['namespace'],
            arguments=['node'],
            parameters=parameters,
            additional_env={'RUST_LOG': setting['log_level'], 'GR00T_LOG_FORMAT': setting['log_format']},
            output='screen',
            emulate_tty=True,
        )
    ]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value='', description=description) for name, _, description in PARAMETERS
    ]
    for name, default, description in SETTINGS:
        choices = {'choices': CHOICES[name]} if name in CHOICES else {}
        arguments.append(DeclareLaunchArgument(name, default_value=default, description=description, **choices))
    return LaunchDescription([*arguments, OpaqueFunction(function=policy_node)])
