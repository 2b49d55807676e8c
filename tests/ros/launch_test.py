"""The launch files: what they start with which arguments, and what they refuse."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import yaml
from harness import ROOT, node_binary
from mini_launch import LaunchError, evaluate

POLICY = ROOT / 'launch/policy.launch.py'

# Longest time in which the node has to refuse an empty configuration [s].
REFUSAL_LIMIT_S = 20


class LaunchTest(unittest.TestCase):
    """Each test has an install prefix as colcon makes it, with a program in the place of the node."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='gr00t_blackhole_launch_')
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.prefix = self.scratch / 'install'
        index = self.prefix / 'share/ament_index/resource_index/packages'
        index.mkdir(parents=True)
        (index / 'gr00t_blackhole').touch()
        programs = self.prefix / 'lib/gr00t_blackhole'
        programs.mkdir(parents=True)
        self.program = programs / 'gr00t_blackhole'
        self.program.symlink_to('/bin/true')
        share = self.prefix / 'share/gr00t_blackhole'
        share.mkdir()
        for folder in ('launch', 'config'):
            (share / folder).symlink_to(ROOT / folder)
        before = os.environ.get('AMENT_PREFIX_PATH', '')
        self.addCleanup(os.environ.__setitem__, 'AMENT_PREFIX_PATH', before)
        os.environ['AMENT_PREFIX_PATH'] = f'{self.prefix}:{before}'

    def evaluate(self, **arguments):
        return evaluate(POLICY, arguments, scratch=self.scratch)

    def command(self, **arguments):
        commands = self.evaluate(**arguments).commands
        self.assertEqual(len(commands), 1)
        return commands[0]

    def parameters(self, command):
        """All parameter files of a command, later ones over earlier ones."""
        values = {}
        for option, path in zip(command.argv, command.argv[1:]):
            if option == '--params-file':
                values.update(yaml.safe_load(Path(path).read_text())['/**']['ros__parameters'])
        return values

    def test_without_arguments_the_node_keeps_its_defaults(self):
        command = self.command()
        self.assertEqual(command.argv, [str(self.program), 'node', '--ros-args', '-r', '__node:=policy'])
        self.assertEqual(command.environment, {'RUST_LOG': 'info'})

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
        command = self.command(version='n17', letterbox='off')
        self.assertEqual(self.parameters(command), {'version': 'n17', 'letterbox': 'off'})

    def test_an_instruction_that_looks_like_another_type_stays_text(self):
        for text in ('yes', '42', 'null', '[1, 2]', "it's \"there\""):
            self.assertEqual(self.parameters(self.command(instruction=text)), {'instruction': text})

    def test_arguments_override_the_parameter_file(self):
        file = self.scratch / 'robot.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': {'seed': 1, 'rate_hz': 3.0}}}))
        self.assertEqual(
            self.parameters(self.command(params_file=str(file), seed='2')), {'seed': 2, 'rate_hz': 3.0}
        )

    def test_namespace_name_and_log_level(self):
        command = self.command(namespace='left', name='policy', log_level='debug')
        self.assertIn('__ns:=/left', command.argv)
        self.assertIn('__node:=policy', command.argv)
        self.assertEqual(command.environment, {'RUST_LOG': 'debug'})

    def test_mistakes_are_refused(self):
        for arguments, sentence in (
            ({'params_file': '/no/such.yaml'}, 'does not exist'),
            ({'log_level': 'loud'}, 'not one of'),
            ({'seed': 'seven'}, 'is not a int'),
            ({'use_sim_time': 'perhaps'}, 'is not a bool'),
            ({'snapshto': '/models'}, 'does not declare: snapshto'),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(LaunchError, sentence):
                self.evaluate(**arguments)

    def test_every_argument_is_documented(self):
        for name, description in self.evaluate().descriptions.items():
            self.assertRegex(description, r'^[A-Z].{15,}\.$', name)

    def test_every_parameter_argument_is_a_parameter_of_the_node(self):
        table = yaml.safe_load((ROOT / 'config/default.yaml').read_text())['/**']['ros__parameters']
        own = {'params_file', 'namespace', 'name', 'log_level', 'use_sim_time'}
        self.assertLessEqual(set(self.evaluate().values) - own, set(table))

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


if __name__ == '__main__':
    unittest.main()
