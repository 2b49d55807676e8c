"""`doctor` beside a robot that is well, and beside robots that are not: its lines, and its exit status."""

import json
import os
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import droid
import rig
import yaml
from droid import Droid
from harness import RELIABLE, SENSOR_DATA, NodeProcess, Peer, domain, node_binary
from rig import CAMERA, CAMERA_TOPIC, JOINT_TOPIC, Robot, synthetic_snapshot
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, JointState
from tf2_msgs.msg import TFMessage

# Longest time that `doctor` takes, topics included [s].
LIMIT_S = 60
SECONDS = '2'
CAMERA_LINE = f"camera '{CAMERA}' on {CAMERA_TOPIC}: "
JOINTS_LINE = f'on {JOINT_TOPIC}: '


class DoctorCase(unittest.TestCase):
    version = 'n16'

    def setUp(self):
        self.snapshot = synthetic_snapshot('tiny', self.version)
        self.domain = self.enterContext(domain())
        self.peer = self.enterContext(Peer(self.domain, 'robot'))

    def run_doctor(self, *arguments):
        """Runs `doctor` while the peer goes on publishing; gives the ended process."""
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(self.domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        argv = [str(node_binary()), 'doctor', *arguments]
        ended = []

        def run():
            ended.append(
                subprocess.run(
                    argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S
                )
            )

        thread = threading.Thread(target=run)
        thread.start()
        self.peer.wait_for(lambda: not thread.is_alive(), LIMIT_S, 'the end of doctor')
        thread.join()
        self.assertEqual(len(ended), 1, 'doctor has not ended by itself')
        self.assertNotIn('panicked', ended[0].stderr)
        return ended[0]

    def examine(self, parameters, *arguments, options=(), seconds=SECONDS):
        """Runs `doctor` with a parameter file; gives its exit status and the lines about the robot."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / 'robot.yaml'
            file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
            ros_args = ['--ros-args', '--params-file', str(file), *arguments]
            ended = self.run_doctor('--seconds', seconds, *options, *ros_args)
        return ended.returncode, ended.stdout.splitlines(), ended.stdout + ended.stderr

    def assert_line(self, lines, level, *parts):
        """Some line has this level and holds all parts."""
        found = [line for line in lines if line.startswith(level) and all(part in line for part in parts)]
        self.assertTrue(found, f'no line {level} with {parts} in:\n' + '\n'.join(lines))
        return found[0]

    def failures(self, lines):
        return [line for line in lines if line.startswith('FAIL')]

    def robot(self, **topics):
        """A robot that publishes before doctor comes."""
        return silent_start(self.peer, lambda: Robot(self.peer, **topics))


def silent_start(peer, make):
    """Makes a robot whose publishers wait for nobody: doctor comes later."""
    publisher = peer.publisher
    peer.publisher = lambda kind, topic, qos=SENSOR_DATA: publisher(kind, topic, qos, subscribers=0)
    try:
        return make()
    finally:
        peer.publisher = publisher


class WellTest(DoctorCase):
    def test_a_robot_that_is_well(self):
        self.robot()
        code, lines, output = self.examine(rig.parameters(self.snapshot))
        self.assertEqual(self.failures(lines), [], output)
        self.assertEqual(code, 0, output)
        self.assert_line(lines, 'ok', CAMERA_LINE, ' Hz, ', ' ms old when it comes')
        self.assert_line(lines, 'ok', JOINTS_LINE, ' Hz, ')
        self.assert_line(lines, 'ok', 'parameters: they fit the robot: 1 camera topics, 1 state topics')
        self.assert_line(lines, 'ok', 'node name: /policy is free')
        self.assert_line(lines, 'ok', 'clock: system time')

    def test_the_same_for_machines(self):
        self.robot()
        code, _, output = self.examine(rig.parameters(self.snapshot), options=['--json'])
        findings = json.loads(output[: output.rindex('}') + 1])['findings']
        self.assertEqual(code, 0, output)
        self.assertEqual({set(finding) == {'level', 'subject', 'found', 'fix'} for finding in findings}, {True})
        [camera] = [finding for finding in findings if finding['subject'].startswith('camera')]
        self.assertEqual((camera['level'], camera['fix']), ('ok', None))
        for finding in findings:
            self.assertEqual(finding['fix'] is None, finding['level'] == 'ok', finding)

    def test_namespace_and_remaps_are_those_of_the_node(self):
        self.robot(camera_topic='/left/cam', joint_topic='/left/arm')
        parameters = rig.parameters(self.snapshot)
        parameters['camera'][CAMERA]['topic'] = 'cam'
        code, lines, output = self.examine(parameters, '-r', '__ns:=/left', '-r', 'joint_states:=arm')
        self.assertEqual(code, 0, output)
        self.assert_line(lines, 'ok', f"camera '{CAMERA}' on /left/cam: ")
        self.assert_line(lines, 'ok', 'on /left/arm: ')
        self.assert_line(lines, 'ok', 'node name: /left/policy is free')

    def test_the_node_itself_may_run_but_not_twice(self):
        parameters = rig.parameters(self.snapshot)
        with NodeProcess(parameters, domain_id=self.domain) as node:
            node.wait_for_log('ready as /policy', LIMIT_S)
            self.robot()
            code, lines, output = self.examine(parameters)
            self.assertEqual(code, 0, output)
            self.assert_line(lines, 'ok', 'node name: /policy is running')
            with NodeProcess(parameters, domain_id=self.domain) as second:
                second.wait_for_log('ready as /policy', LIMIT_S)
                # On a busy machine two seconds are not enough to find both.
                _, lines, _ = self.examine(parameters, seconds='6')
                self.assert_line(lines, 'warn', '2 nodes named /policy are running', '__node:=NAME')


class IllTest(DoctorCase):
    def ill(self, parameters=None, *arguments):
        """The lines of doctor beside a robot that is not well."""
        code, lines, output = self.examine(parameters or rig.parameters(self.snapshot), *arguments)
        self.assertEqual(code, 1, output)
        return lines

    def test_nobody_publishes(self):
        self.robot(camera_topic='/elsewhere')
        lines = self.ill()
        line = self.assert_line(lines, 'FAIL', CAMERA_LINE, 'nobody publishes it', f'camera.{CAMERA}.topic')
        self.assertIn('of its type there are: /elsewhere', line)
        self.assertEqual(self.failures(lines), [line])

    def test_another_type(self):
        self.robot(camera_type=CompressedImage)
        lines = self.ill()
        line = self.assert_line(lines, 'FAIL', CAMERA_LINE, '/robot publishes sensor_msgs/msg/CompressedImage')
        self.assertIn('the node reads sensor_msgs/msg/Image — set camera.<key>.transport', line)
        self.assertEqual(self.failures(lines), [line])

    def test_case_54_stamp_zero(self):
        robot = self.robot()
        robot.now = lambda: 0
        lines = self.ill()
        for topic in (CAMERA_LINE, JOINTS_LINE):
            self.assert_line(lines, 'FAIL', topic, 'header.stamp is 0', 'set `timeline` to receive')
        self.assertEqual(len(self.failures(lines)), 2, lines)

    def test_case_54_stamps_of_another_clock(self):
        robot = self.robot()
        now = robot.now
        robot.now = lambda: now() - 3600 * 1_000_000_000
        lines = self.ill()
        self.assert_line(lines, 'FAIL', CAMERA_LINE, "behind the node's clock", 'set `timeline` to receive')
        parameters = rig.parameters(self.snapshot, timeline='receive')
        code, lines, output = self.examine(parameters)
        self.assertEqual(code, 0, output)

    def test_stale(self):
        robot = self.robot()
        now = robot.now
        robot.now = lambda: now() - 5 * 1_000_000_000
        lines = self.ill()
        self.assert_line(lines, 'FAIL', CAMERA_LINE, 'stale: 5.', '(limit 3.000 s)', 'camera_max_age_ms')
        self.assert_line(lines, 'FAIL', JOINTS_LINE, 'stale: 5.', 'state_max_age_ms')

    def test_published_but_silent(self):
        robot = self.robot()
        robot.frame = None
        lines = self.ill()
        line = self.assert_line(lines, 'FAIL', CAMERA_LINE, 'it is published, but no message came in 2 s')
        self.assertIn('same user', line)
        self.assertEqual(self.failures(lines), [line])

    def test_two_publishers_of_the_joints(self):
        self.robot()
        with Peer(self.domain, 'second') as second:
            second.node.create_publisher(JointState, JOINT_TOPIC, SENSOR_DATA)
            lines = self.ill()
        line = self.assert_line(lines, 'FAIL', JOINTS_LINE, '2 publishers: ', 'leave one of them')
        self.assertIn('/robot', line)
        self.assertIn('/second', line)

    def test_a_joint_is_missing(self):
        robot = self.robot()
        robot.hold(rig.pose(1), leave_out=['left_wrist_roll_joint'])
        lines = self.ill()
        self.assert_line(lines, 'FAIL', JOINTS_LINE, 'the message is refused', 'left_wrist_roll_joint')

    def test_case_30_simulated_time(self):
        self.robot()
        parameters = rig.parameters(self.snapshot, use_sim_time=True)
        lines = self.ill(parameters)
        self.assert_line(lines, 'FAIL', 'clock: use_sim_time is true, but nobody publishes /clock', 'ros2 bag play')
        clock = self.peer.node.create_publisher(Clock, '/clock', SENSOR_DATA)

        def tick():
            clock.publish(Clock(clock=self.peer.node.get_clock().now().to_msg()))

        self.peer.node.create_timer(0.05, tick)
        code, lines, output = self.examine(parameters)
        self.assertEqual(code, 0, output)
        self.assert_line(lines, 'ok', 'clock: /clock of /robot: ')
        code, lines, output = self.examine(rig.parameters(self.snapshot))
        self.assertEqual(code, 0, output)
        self.assert_line(lines, 'warn', 'use_sim_time is false, but /robot publishes /clock')

    def test_parameters_and_checkpoint(self):
        lines = self.ill(rig.parameters(self.snapshot, rate_Hz=3.0))
        self.assert_line(lines, 'FAIL', "parameters: parameter 'rate_Hz' does not exist", "did you mean 'rate_hz'?")
        lines = self.ill(rig.parameters('/no/such'))
        self.assert_line(lines, 'FAIL', 'checkpoint: /no/such is not a directory')
        self.assert_line(lines, 'warn', 'topics: not looked at')
        parameters = rig.parameters(self.snapshot)
        parameters['state']['left_arm']['joints'].pop()
        lines = self.ill(parameters)
        self.assert_line(lines, 'FAIL', 'state.left_arm.joints', 'has 6 names')


class TransformsTest(DoctorCase):
    version = 'n17'

    def test_a_robot_that_is_well(self):
        silent_start(self.peer, lambda: Droid(self.peer))
        code, lines, output = self.examine(droid.parameters(self.snapshot))
        self.assertEqual(code, 0, output)
        self.assertEqual(self.failures(lines), [], output)
        self.assert_line(lines, 'ok', 'transforms on /tf: ', ' Hz')
        self.assert_line(lines, 'ok', 'transforms on /tf_static: 1 message')
        self.assert_line(lines, 'ok', 'poses: all 1 are known')
        self.assert_line(lines, 'ok', f'state gripper_position on {droid.GRIPPER_TOPIC}: ')

    def test_case_61_frames_of_another_shape(self):
        silent_start(self.peer, lambda: Droid(self.peer)).still[droid.WRIST] = rig.picture(320, 240, 1)
        code, lines, output = self.examine(droid.parameters(self.snapshot))
        self.assertEqual(code, 1, output)
        line = self.assert_line(lines, 'FAIL', f"camera '{droid.WRIST}' on ", 'gives frames of 320x240', 'crop the frames')
        self.assertEqual(self.failures(lines), [line], output)

    def test_poses_that_nobody_publishes_are_not_well_on_any_line(self):
        silent_start(self.peer, lambda: Droid(self.peer, ('cameras', 'joints', 'gripper')))
        code, lines, output = self.examine(droid.parameters(self.snapshot))
        self.assertEqual(code, 1, output)
        self.assert_line(lines, 'FAIL', 'poses: ', droid.TIP)
        for topic in ('/tf', '/tf_static'):
            self.assert_line(lines, 'warn', f'transforms on {topic}: nobody publishes it')

    def test_case_26_qos_that_does_not_match(self):
        speaks = ('cameras', 'joints', 'gripper', 'tf')
        silent_start(self.peer, lambda: Droid(self.peer, speaks))
        self.peer.node.create_publisher(TFMessage, '/tf_static', RELIABLE)
        code, lines, output = self.examine(droid.parameters(self.snapshot))
        self.assertEqual(code, 1, output)
        line = self.assert_line(lines, 'FAIL', 'transforms on /tf_static: /robot offers QoS (reliable, volatile)', 'durability')
        self.assertIn('publish it with the QoS that the node asks for', line)
        self.assert_line(lines, 'FAIL', 'poses: ', droid.TIP)

    def test_best_effort_transforms(self):
        silent_start(self.peer, lambda: Droid(self.peer, ('cameras', 'joints', 'gripper', 'tf_static')))
        self.peer.node.create_publisher(TFMessage, '/tf', SENSOR_DATA)
        code, lines, output = self.examine(droid.parameters(self.snapshot))
        self.assertEqual(code, 1, output)
        self.assert_line(lines, 'FAIL', 'transforms on /tf: /robot offers QoS (best_effort, volatile)', 'reliability')


class UsageTest(DoctorCase):
    def test_without_the_nodes_arguments(self):
        ended = self.run_doctor('--snapshot', str(self.snapshot))
        lines = ended.stdout.splitlines()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assert_line(lines, 'ok', 'checkpoint: n16 in ')
        self.assert_line(lines, 'warn', 'topics: not looked at, since no parameters name them')
        self.assert_line(lines, 'ok', 'Tenstorrent')

    def test_wrong_usage(self):
        for arguments, sentence in (
            (['--seconds', '0'], 'a number from 0.5 to 600'),
            (['--colour'], 'not an argument of doctor'),
            (['--ros-args', '--params-file', '/no/such.yaml'], "'/no/such.yaml' cannot be read: No such file"),
        ):
            with self.subTest(arguments):
                ended = self.run_doctor(*arguments)
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(sentence, ended.stderr)
                self.assertEqual(ended.stdout, '')


if __name__ == '__main__':
    unittest.main()
