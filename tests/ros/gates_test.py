"""What keeps a robot from moving on what it sees or on what it is told: every gate with real ROS 2 peers."""

import math
import re
import signal
import unittest

import droid
import numpy as np
from droid import CAMERA_HZ, EXTERIOR, TAG, WRIST, Droid
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED
from node_case import PATIENCE, NodeCase
from node_test import NodeTest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rig import (
    CAMERA,
    CAMERA_TOPIC,
    CHUNK,
    GROUPS,
    JOINT_TOPIC,
    JOINTS,
    NODE,
    TRAJECTORY,
    Robot,
    joint_state,
    nanoseconds,
    offline_chunk,
    picture,
    pose,
    predict,
    synthetic_snapshot,
    time_message,
    values,
)
from trajectory_msgs.msg import JointTrajectory

MS = 1_000_000


def change(test, peer, **parameters):
    """Sets parameters of the running node."""
    messages = [Parameter(name, value=value).to_parameter_msg() for name, value in parameters.items()]
    request = SetParameters.Request(parameters=messages)
    for result in peer.call(SetParameters, f'{NODE}/set_parameters', request).results:
        test.assertTrue(result.successful, result.reason)


def assert_silent(test, peer, chunks, seconds=0.8):
    """No chunk comes for so long, but for one that is being computed."""
    peer.spin(0.3)
    count = len(chunks)
    peer.spin(seconds)
    test.assertEqual(len(chunks), count, 'a chunk was published')


class CameraTest(NodeTest):
    def test_case_01_a_camera_that_repeats_its_picture(self):
        node, peer = self.start(frozen_camera_frames=10)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        for seed in [1, 2]:
            line = self.line(node, peer, r'waiting for camera .*frozen: the last \d+ frames')
            self.assertIn(f"camera '{CAMERA}' (topic {CAMERA_TOPIC})", line)
            self.assertIn('limit 10, `frozen_camera_frames`', line)
            assert_silent(self, peer, chunks)
            robot.show(picture(256, 256, seed))
            self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.line(node, peer, 'waiting for camera .*frozen')
        change(self, peer, frozen_camera_frames=0)
        self.assert_offline(robot, self.chunk_after(peer, chunks))
        node.stop(signal.SIGINT)
        self.assertRegex(node.log(), r'causes of waiting: .*frozen \d+')

    def test_case_45_a_robot_at_rest_before_a_picture_that_changes(self):
        node, peer = self.start(frozen_camera_frames=2, state_jump_max_rad_s=0.001)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        pictures = [picture(128, 128, 1), picture(128, 128, 1)]
        # The least that can change.
        pictures[1][64, 64, 0] ^= 1
        turns = 0

        def turn():
            nonlocal turns
            turns += 1
            robot.show(pictures[turns % 2])

        peer.node.destroy_timer(robot.timer)
        peer.node.create_timer(0.05, lambda: (turn(), robot.publish()))
        peer.wait_for(lambda: len(chunks) >= 5, PATIENCE, 'five chunks')
        self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.assertNotIn('frozen', node.log())

    def test_case_54_a_camera_on_another_clock(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        now = robot.now
        publish_joints = robot.joint_states.publish

        def publish_stamped(message):
            message.header.stamp = time_message(now())
            publish_joints(message)

        # Only the camera's stamps are of no use.
        robot.joint_states.publish = publish_stamped
        for stamp, expected in [
            (lambda: 0, 'header.stamp is 0'),
            (lambda: now() - 1_700_000_000_000 * MS, r"header.stamp is 17000\d+\.\d+ s behind the node's clock"),
        ]:
            robot.now = stamp
            line = self.line(node, peer, f'waiting for camera .*{expected}')
            self.assertIn('set `timeline` to receive', line)
            self.assertIn(CAMERA_TOPIC, line)
            self.assertNotIn('waist', line)
        self.assertEqual(chunks, [])


class Delayed:
    """A publisher whose messages are a while on their way."""

    def __init__(self, publisher, now):
        self.publisher, self.now, self.delay, self.waiting = publisher, now, 0, []

    def publish(self, message):
        self.waiting.append((self.now() + self.delay, message))

    def deliver(self):
        while self.waiting and self.waiting[0][0] <= self.now():
            self.publisher.publish(self.waiting.pop(0)[1])


class SlowWrist(Droid):
    """A robot whose wrist camera has a slow transport, which delivers whenever the other camera has sent a frame: on a
    machine that stalls, the frames are as far apart as they should be.
    """

    def __init__(self, peer, delay):
        self.delay, self.wrist = delay, None
        super().__init__(peer)

    def show(self, key, publisher):
        if key == WRIST and self.wrist is None:
            self.wrist = Delayed(publisher, self.now)
            self.wrist.delay = self.delay
        super().show(key, self.wrist if key == WRIST else publisher)
        if key == EXTERIOR and self.wrist:
            self.wrist.deliver()


class PairTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny', 'n17')

    def start(self, **changes):
        return self.start_node(droid.parameters(self.snapshot, **changes))

    @staticmethod
    def shown(chunk):
        """Stamp of the frame of now, by camera."""
        return {age.input: nanoseconds(age.stamp) for age in chunk.ages if age.input in CAMERA_HZ and age.delta == 0}

    def assert_offline(self, chunk, robot):
        frames, state = robot.seen(chunk)
        self.assert_same_bytes(chunk, predict(self.snapshot, TAG, frames, state, chunk.seed, chunk.instruction))

    def test_case_51_cameras_that_are_200_ms_apart(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = SlowWrist(peer, 200 * MS)
        line = self.line(node, peer, 'waiting for cameras .* to show the same moment')
        for part in [f"'{WRIST}' and '{EXTERIOR}'", 'limit 0.150 s', '`camera_skew_max_ms`']:
            self.assertIn(part, line)
        skew = float(re.search(r'is ([\d.]+) s older', line)[1])
        self.assertTrue(0.15 < skew < 0.35, line)
        assert_silent(self, peer, chunks)
        self.assertEqual(chunks, [])
        change(self, peer, camera_skew_max_ms=1000)
        peer.wait_for(lambda: len(chunks) >= 2, PATIENCE, 'chunks with a wider limit')
        change(self, peer, camera_skew_max_ms=150)
        assert_silent(self, peer, chunks)
        robot.wrist.delay = 0
        count = len(chunks)
        peer.wait_for(lambda: len(chunks) > count, PATIENCE, 'a chunk of cameras that are together')
        self.assert_offline(chunks[-1], robot)

    def test_case_52_30_and_20_hz_with_80_ms_of_transport(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = SlowWrist(peer, 80 * MS)
        peer.wait_for(lambda: len(chunks) >= 9, PATIENCE, 'nine chunks')
        skews = sorted(abs(shown[EXTERIOR] - shown[WRIST]) for shown in map(self.shown, chunks))
        # The nearest frame of a 30 Hz camera; a loaded machine may miss one now and then. By arrival it would be 80 ms.
        self.assertLess(skews[len(skews) // 2], 30 * MS, skews)
        self.assert_offline(chunks[-1], robot)


class StateTest(NodeTest):
    def test_a_joint_that_jumps(self):
        node, peer = self.start(state_jump_max_rad_s=30.0, rate_hz=20.0)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        calm = pose(0)
        self.chunk_after(peer, chunks)
        jumped = calm | {'left_elbow_pitch_joint': calm['left_elbow_pitch_joint'] + 300.0}
        robot.hold(jumped)
        line = self.line(node, peer, "waiting for state .*joint 'left_elbow_pitch_joint' moved 300.000 rad")
        self.assertIn(f'topic {JOINT_TOPIC}', line)
        self.assertIn('the limit is 30 rad/s (`state_jump_max_rad_s`)', line)
        robot.hold(calm)
        self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.assertFalse(any(robot.seen(chunk)[1] is jumped for chunk in chunks))

    def test_case_16_a_position_that_is_no_number(self):
        node, peer = self.start(state_max_age_ms=500)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        for bad in [math.nan, math.inf]:
            robot.hold(pose(1) | {'waist_yaw_joint': bad})
            line = self.line(node, peer, "waiting for state .*position of joint 'waist_yaw_joint' is .*not a finite number")
            self.assertIn('limit 0.500 s', line)
            assert_silent(self, peer, chunks)
            robot.hold(pose(2))
            self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_case_31_an_array_of_another_length(self):
        node, peer = self.start(state_max_age_ms=500)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        robot.joints = None

        def publish():
            message = joint_state(pose(1))
            message.header.stamp = time_message(robot.now())
            message.velocity, message.effort = [], [1.0]
            robot.joint_states.publish(message)

        timer = peer.node.create_timer(0.05, publish)
        line = self.line(node, peer, 'waiting for state .*1 values in `effort`')
        self.assertIn('has to be empty or as long as `name`', line)
        assert_silent(self, peer, chunks)
        peer.node.destroy_timer(timer)
        robot.hold(pose(2))
        self.assert_offline(robot, self.chunk_after(peer, chunks))


class TrajectoryTest(NodeTest):
    def trajectory_after(self, peer, chunks, trajectories, is_new):
        """A trajectory that was published after now, and its chunk."""
        count = len(trajectories)
        found = lambda: next(filter(is_new, trajectories[count:]), None)
        trajectory = peer.wait_for(found, PATIENCE, 'a trajectory')
        columns = lambda chunk: np.concatenate([values(chunk)[group] for group in GROUPS], -1).astype(np.float64)
        last = list(trajectory.points[-1].positions)
        chunk = peer.wait_for(
            lambda: next((c for c in chunks if columns(c)[-1].tolist() == last), None), PATIENCE, 'its chunk'
        )
        rows = columns(chunk)[-len(trajectory.points) :]
        self.assertEqual([list(point.positions) for point in trajectory.points], rows.tolist())
        return trajectory, chunk

    def test_case_27_both_stamps(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        trajectories = peer.collect(JointTrajectory, TRAJECTORY)
        robot = Robot(peer)
        # Every reading is another one, and so is every chunk; no observation is new.
        now = lambda: peer.node.get_clock().now().nanoseconds
        robot.now = lambda: now() - 120 * MS
        robot.timer.cancel()
        turn = iter(range(100_000))
        peer.node.create_timer(robot.period, lambda: (robot.hold(pose(next(turn))), robot.publish()))

        stamped = lambda t: t.header.stamp.sec > 0
        trajectory, chunk = self.trajectory_after(peer, chunks, trajectories, stamped)
        self.assertEqual(trajectory.header.stamp, chunk.header.stamp)
        times = [nanoseconds(point.time_from_start) for point in trajectory.points]
        self.assertEqual(times, [50 * MS * (row + 1) for row in range(chunk.horizon)][-len(times) :])
        self.assertLess(len(times), chunk.horizon, 'points in the past are left out')

        change(self, peer, trajectory_stamp='zero')
        trajectory, chunk = self.trajectory_after(peer, chunks, trajectories, lambda t: not stamped(t))
        self.assertEqual(nanoseconds(trajectory.header.stamp), 0)
        times = [nanoseconds(point.time_from_start) for point in trajectory.points]
        self.assertTrue(0 < times[0] <= 50 * MS, times)
        self.assertEqual(np.diff(times).tolist(), [50 * MS] * (len(times) - 1))
        self.assertLess(len(times), chunk.horizon)
        # The moments are those of the observation all the same.
        published = nanoseconds(chunk.header.stamp) + 50 * MS * chunk.horizon - times[-1]
        self.assertLessEqual(nanoseconds(chunk.completed), published)
        self.assertLess(published, now())


class LimitTest(NodeTest):
    def test_case_94_limits_refuse_or_clamp(self):
        limits = {'waist': {'position_min': [-0.001], 'position_max': [0.001]}}
        node, peer = self.start(action=limits)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        trajectories = peer.collect(JointTrajectory, TRAJECTORY)
        robot = Robot(peer)
        line = self.line(node, peer, r"no chunk: joint 'waist_\w+' \(group 'waist'\): row \d+ commands position")
        self.assertRegex(line, r'limit -?0\.001 \(`action.waist.position_m(ax|in)`\)')
        assert_silent(self, peer, chunks)
        self.assertEqual((chunks, trajectories), ([], []))

        change(self, peer, limit_violation='clamp')
        chunk = self.chunk_after(peer, chunks)
        rgb, positions = robot.seen(chunk)
        expected = offline_chunk(self.snapshot, rgb, positions, chunk.seed)
        for name, rows in values(chunk).items():
            if name == 'waist':
                self.assertTrue(np.all(np.abs(rows) <= 0.001))
                np.testing.assert_allclose(rows, np.clip(expected[name], -0.001, 0.001), atol=1e-9)
            else:
                self.assertEqual(rows.tobytes(), expected[name].tobytes(), name)
        peer.wait_for(lambda: trajectories, PATIENCE, 'a trajectory')
        waist = [JOINTS.index(joint) for joint in GROUPS['waist']]
        for point in trajectories[0].points:
            self.assertTrue(all(abs(point.positions[column]) <= 0.001 for column in waist))
        node.stop(signal.SIGINT)
        self.assertRegex(node.log(), r'values limited [1-9]\d* in [1-9]\d* chunks, chunks beyond a limit [1-9]')

    def test_limits_that_do_not_fit_are_refused_at_start(self):
        node, peer = self.start(action={'waist': {'velocity_max': [1.0, 2.0]}})
        self.assertEqual(node.process.wait(PATIENCE), 2)
        node._reader.join(1)
        self.assertIn("'action.waist.velocity_max' has 2 values; group 'waist' needs 3", node.log())


if __name__ == '__main__':
    unittest.main()
