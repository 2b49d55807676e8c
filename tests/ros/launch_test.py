"""The launch files: what they start with which arguments, and what they refuse."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import yaml
from harness import ROOT, NodeProcess, domain, node_binary
from mini_launch import LaunchError, ParameterValue, evaluate, load
from rig import synthetic_snapshot

LAUNCH = ROOT / 'launch'
POLICY = LAUNCH / 'policy.launch.py'
REPLAY_MONITOR = LAUNCH / 'replay_monitor.launch.py'
# Robot to launch file and to the model version that its parameter file is for.
ROBOTS = {'gr1': (LAUNCH / 'gr1.launch.py', 'n16'), 'droid': (LAUNCH / 'droid.launch.py', 'n17')}

# Longest time in which the node has to refuse an empty configuration [s].
REFUSAL_LIMIT_S = 20

# Longest time from the start of the node to its being ready with a tiny checkpoint [s].
READY_LIMIT_S = 60

DEFAULT_ENVIRONMENT = {'RUST_LOG': 'info', 'GR00T_LOG_FORMAT': 'text'}


def argument_names(path):
    """Arguments of a launch file, as the table or tables at its top list them."""
    module = load(path)
    tables = [getattr(module, name, ()) for name in ('PARAMETERS', 'SETTINGS', 'ARGUMENTS')]
    return {row[0] for table in tables for row in table}


class LaunchCase(unittest.TestCase):
    """Each test has an install prefix as colcon makes it, with a program in the place of the node."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='gr00t_blackhole_launch_')
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.prefix = self.scratch / 'install'
        self.program = self.install('gr00t_blackhole', 'gr00t_blackhole')
        share = self.prefix / 'share/gr00t_blackhole'
        share.mkdir()
        for folder in ('launch', 'config'):
            (share / folder).symlink_to(ROOT / folder)
        before = os.environ.get('AMENT_PREFIX_PATH', '')
        self.addCleanup(os.environ.__setitem__, 'AMENT_PREFIX_PATH', before)
        os.environ['AMENT_PREFIX_PATH'] = f'{self.prefix}:{before}'

    def install(self, package, executable):
        """Puts a program that does nothing into the prefix, and gives its path."""
        index = self.prefix / 'share/ament_index/resource_index/packages'
        index.mkdir(parents=True, exist_ok=True)
        (index / package).touch()
        program = self.prefix / 'lib' / package / executable
        program.parent.mkdir(parents=True)
        program.symlink_to('/bin/true')
        return program

    def evaluate(self, file=POLICY, **arguments):
        return evaluate(file, arguments, scratch=self.scratch)

    def command(self, file=POLICY, **arguments):
        commands = self.evaluate(file, **arguments).commands
        self.assertEqual(len(commands), 1)
        return commands[0]

    def parameters(self, command):
        """All parameter files of a command, later ones over earlier ones."""
        values = {}
        for option, path in zip(command.argv, command.argv[1:]):
            if option == '--params-file':
                values.update(yaml.safe_load(Path(path).read_text())['/**']['ros__parameters'])
        return values


class PolicyTest(LaunchCase):
    def test_without_arguments_the_node_keeps_its_defaults(self):
        command = self.command()
        self.assertEqual(command.argv, [str(self.program), 'node', '--ros-args', '-r', '__node:=policy'])
        self.assertEqual(command.environment, DEFAULT_ENVIRONMENT)

    def test_arguments_become_parameters_of_their_type(self):
        command = self.command(
            snapshot='/models/n16', embodiment='gr1', seed='7', rate_hz='5', use_sim_time='true', instruction='place: left'
        )
        self.assertEqual(
            self.parameters(command),
            {
                'snapshot': '/models/n16',
                'embodiment': 'gr1',
                'seed': 7,
                'rate_hz': 5.0,
                'use_sim_time': True,
                'instruction': 'place: left',
            },
        )
        self.assertIs(type(self.parameters(command)['rate_hz']), float)

    def test_choices_of_a_version_stay_text(self):
        command = self.command(version='n15', data_config='so100')
        self.assertEqual(self.parameters(command), {'version': 'n15', 'data_config': 'so100'})
        command = self.command(version='n17', letterbox='off', backend='cpu')
        self.assertEqual(self.parameters(command), {'version': 'n17', 'letterbox': 'off', 'backend': 'cpu'})

    def test_an_instruction_that_looks_like_another_type_stays_text(self):
        for text in ('yes', '42', 'null', '[1, 2]', "it's \"there\""):
            self.assertEqual(self.parameters(self.command(instruction=text)), {'instruction': text})

    def test_arguments_override_the_parameter_file(self):
        file = self.scratch / 'robot.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': {'seed': 1, 'rate_hz': 3.0}}}))
        self.assertEqual(
            self.parameters(self.command(params_file=str(file), seed='2')), {'seed': 2, 'rate_hz': 3.0}
        )

    def test_namespace_name_and_log(self):
        command = self.command(namespace='left', name='policy', log_level='debug', log_format='json')
        self.assertIn('__ns:=/left', command.argv)
        self.assertIn('__node:=policy', command.argv)
        self.assertEqual(command.environment, {'RUST_LOG': 'debug', 'GR00T_LOG_FORMAT': 'json'})

    def test_mistakes_are_refused(self):
        for arguments, sentence in (
            ({'params_file': '/no/such.yaml'}, 'does not exist'),
            ({'log_level': 'loud'}, 'not one of'),
            ({'log_format': 'xml'}, 'not one of'),
            ({'autostart': 'later'}, 'is not a bool'),
            ({'seed': 'seven'}, 'is not a int'),
            ({'use_sim_time': 'perhaps'}, 'is not a bool'),
            ({'snapshto': '/models'}, 'does not declare: snapshto'),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(LaunchError, sentence):
                self.evaluate(**arguments)

    def test_every_parameter_argument_is_a_parameter_of_the_node(self):
        table = yaml.safe_load((ROOT / 'config/default.yaml').read_text())['/**']['ros__parameters']
        parameters = {name for name, _, _ in load(POLICY).PARAMETERS}
        # The node is to get this parameter with its lifecycle.
        self.assertLessEqual(parameters, set(table))

    def test_the_node_is_started_and_says_what_it_lacks(self):
        self.program.unlink()
        self.program.symlink_to(node_binary())
        command = self.command()
        start = time.monotonic()
        ended = subprocess.run(
            command.argv,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=REFUSAL_LIMIT_S,
        )
        output = ended.stdout + ended.stderr
        self.assertNotEqual(ended.returncode, 0, output)
        self.assertIn('snapshot', output)
        self.assertNotIn('panicked', output)
        self.assertLess(time.monotonic() - start, REFUSAL_LIMIT_S)


class RobotTest(LaunchCase):
    """The launch files of robots: policy.launch.py with the robot's parameter file."""

    def test_the_parameter_file_is_the_robots_unless_another_is_given(self):
        for robot, (file, _) in ROBOTS.items():
            with self.subTest(robot):
                own = self.prefix / f'share/gr00t_blackhole/config/{robot}.yaml'
                argv = [str(self.program), 'node', '--ros-args', '-r', '__node:=policy', '--params-file', str(own)]
                self.assertEqual(self.command(file).argv, argv)
                other = self.scratch / 'other.yaml'
                other.write_text(yaml.safe_dump({'/**': {'ros__parameters': {'seed': 1}}}))
                self.assertEqual(self.parameters(self.command(file, params_file=str(other))), {'seed': 1})

    def test_every_argument_of_the_policy_is_handed_on(self):
        for robot, (file, _) in ROBOTS.items():
            with self.subTest(robot):
                self.assertEqual(set(self.evaluate(file).values), argument_names(POLICY))
        for robot, (file, _) in ROBOTS.items():
            with self.subTest(robot):
                command = self.command(file, seed='7', namespace='left', autostart='false', log_level='warn')
                parameters = self.parameters(command)
                self.assertEqual((parameters['seed'], parameters['autostart']), (7, False))
                self.assertIn('__ns:=/left', command.argv)
                self.assertEqual(command.environment['RUST_LOG'], 'warn')

    def test_mistakes_are_refused(self):
        for robot, (file, _) in ROBOTS.items():
            with self.subTest(robot), self.assertRaisesRegex(LaunchError, 'does not declare: snapshto'):
                self.evaluate(file, snapshto='/models')

    def test_the_node_becomes_ready_with_a_checkpoint_of_the_robot(self):
        self.program.unlink()
        self.program.symlink_to(node_binary())
        for robot, (file, version) in ROBOTS.items():
            with self.subTest(robot):
                command = self.command(file, snapshot=str(synthetic_snapshot('tiny', version)))
                number = self.enterContext(domain())
                with LaunchedProcess(command, number) as node:
                    node.wait_for_log('ready as /policy', READY_LIMIT_S)
                    self.assertEqual(node.stop().code, 0)


class LaunchedProcess(NodeProcess):
    """What a launch file starts, as it would start it."""

    def __init__(self, command, domain_id):
        start = command.argv.index('--ros-args')
        super().__init__(
            domain_id=domain_id,
            command=command.argv[:start],
            arguments=command.argv[start + 1 :],
            environment=command.environment,
        )


class ReplayMonitorTest(LaunchCase):
    def test_the_node_alone_waits_for_the_clock_of_a_recording(self):
        command = self.command(REPLAY_MONITOR)
        self.assertEqual(self.parameters(command), {'use_sim_time': True})
        self.assertEqual(command.environment, DEFAULT_ENVIRONMENT)
        command = self.command(REPLAY_MONITOR, use_sim_time='false', seed='3')
        self.assertEqual(self.parameters(command), {'use_sim_time': False, 'seed': 3})

    def test_a_bag_is_played_with_its_clock(self):
        node, player = self.evaluate(REPLAY_MONITOR, bag='/bags/a b', bag_rate='0.5').commands
        self.assertEqual(node.argv[0], str(self.program))
        self.assertEqual(player.argv, ['ros2', 'bag', 'play', '--clock', '--rate', '0.5', '/bags/a b'])

    def test_windows_open_with_the_files_of_the_package(self):
        rqt, plotjuggler = self.install('rqt_gui', 'rqt_gui'), self.install('plotjuggler', 'plotjuggler')
        commands = self.evaluate(REPLAY_MONITOR, rqt='true', plotjuggler='true').commands
        self.assertEqual([command.argv[0] for command in commands], [str(self.program), str(rqt), str(plotjuggler)])
        self.assertEqual(commands[1].argv[1], '--perspective-file')
        self.assertIn('/diagnostics_agg:=/diagnostics', commands[1].argv)
        self.assertEqual(commands[2].argv[1], '--layout')
        for command in commands[1:]:
            self.assertTrue(Path(command.argv[2]).is_file(), command.argv[2])

    def test_mistakes_are_refused(self):
        with self.assertRaisesRegex(LaunchError, 'package rqt_gui is not installed'):
            self.evaluate(REPLAY_MONITOR, rqt='true')
        with self.assertRaisesRegex(LaunchError, 'neither true nor false'):
            self.evaluate(REPLAY_MONITOR, plotjuggler='maybe')
        with self.assertRaisesRegex(LaunchError, 'does not declare: bags'):
            self.evaluate(REPLAY_MONITOR, bags='/bags/a')


class DocumentationTest(LaunchCase):
    def test_every_argument_is_documented(self):
        files = sorted(LAUNCH.glob('*.launch.py'))
        self.assertEqual(len(files), 4)
        for file in files:
            for name, description in self.evaluate(file).descriptions.items():
                self.assertRegex(description, r'^[A-Z].{15,}\.$', f'{file.name}: {name}')


class StandInTest(unittest.TestCase):
    """The stand-ins fail on what they do not know."""

    def refuse(self, body, kind):
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / 'some.launch.py'
            file.write_text(body)
            with self.assertRaises(kind):
                evaluate(file, scratch=scratch)

    def test_unknown_names_and_keywords(self):
        self.refuse('from launch.actions import NoSuchAction', ImportError)
        node = 'from launch import LaunchDescription\nfrom launch_ros.actions import Node\n'
        describe = 'def generate_launch_description():\n    return LaunchDescription([{}])\n'
        self.refuse(node + describe.format('Node(package="p", executable="e", colour="red")'), TypeError)
        self.refuse(node + describe.format('Node(package="no_such_package", executable="e")'), LaunchError)

    def test_a_parameter_value_is_a_substitution_or_of_its_type(self):
        with self.assertRaises(TypeError):
            ParameterValue('7', value_type=int)
        self.assertEqual(ParameterValue(7, value_type=int).evaluate(None), 7)

    def test_an_included_file_has_to_exist_and_to_declare_what_it_is_given(self):
        include = (
            'from launch import LaunchDescription\n'
            'from launch.actions import IncludeLaunchDescription\n'
            'from launch.launch_description_sources import PythonLaunchDescriptionSource as Source\n'
            'def generate_launch_description():\n'
            '    return LaunchDescription([{}])\n'
        )
        self.refuse(include.format('IncludeLaunchDescription(Source("/no/such.launch.py"))'), LaunchError)
        handed = f'IncludeLaunchDescription(Source("{POLICY}"), launch_arguments={{"colour": "red"}}.items())'
        self.refuse(include.format(handed), LaunchError)


if __name__ == '__main__':
    unittest.main()
