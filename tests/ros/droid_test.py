"""A robot of two cameras, a pose in TF and a gripper on a topic of its own, through the node and through `predict`."""

import subprocess
import unittest

import droid
import numpy as np
from droid import BASE, CAMERA_HZ, EXTERIOR, FLANGE_TO_TIP, GRIPPER_TOPIC, TAG, Droid, matrix, rot6d, transform
from geometry_msgs.msg import PoseArray, PoseStamped
from gr00t_blackhole.msg import ActionChunk, ActionGroup, StateGroupSpec
from gr00t_blackhole.srv import GetContract, SetInstruction
from harness import LATCHED, RELIABLE, node_binary
from node_case import PATIENCE, NodeCase
from rig import NODE, nanoseconds, predict, synthetic_snapshot, time_message, values
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from tf2_msgs.msg import TFMessage

CHUNK = f'{NODE}/action_chunk'
POSES = f'{NODE}/eef_9d/poses'


class DroidTest(NodeCase):
    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny', 'n17')

    def start(self, **changes):
        return self.start_node(droid.parameters(self.snapshot, **changes))

    def chunk(self, peer, chunks, accept=lambda chunk: True):
        """The next chunk that is acceptable."""
        known = len(chunks)
        return peer.wait_for(lambda: next(filter(accept, chunks[known:]), None), PATIENCE, 'a chunk')

    def assert_offline(self, chunk, frames, state):
        """The chunk has the bytes that the offline command computes from the same."""
        expected = predict(self.snapshot, TAG, frames, state, chunk.seed, chunk.instruction)
        self.assert_same_bytes(chunk, expected)

    @staticmethod
    def looks_back(chunk):
        """Whether every camera has shown a frame of one second ago."""
        stamps = {(age.input, age.delta): nanoseconds(age.stamp) for age in chunk.ages}
        spans = [stamps[key, 0] - stamps[key, -15] for key in CAMERA_HZ]
        return all(abs(span - 1_000_000_000) < 120_000_000 for span in spans)


class SameBytesTest(DroidTest):
    def test_two_cameras_at_30_and_20_hz_and_the_pose_from_tf(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Droid(peer)
        made = set()
        for _ in range(3):
            chunk = self.chunk(peer, chunks, self.looks_back)
            frames, state = robot.seen(chunk)
            self.assertFalse(np.array_equal(frames[EXTERIOR][0], frames[EXTERIOR][1]))
            self.assert_offline(chunk, frames, state)
            made.add(values(chunk)['eef_9d'].tobytes())
        self.assertEqual(len(made), 3, 'other observations give other chunks')
        stamps = {age.input: nanoseconds(age.stamp) for age in chunk.ages if age.delta == 0}
        # The gripper's message has no stamp, so that its time of receipt dates nothing.
        stamped = [stamp for name, stamp in stamps.items() if name != 'gripper_position']
        self.assertEqual(nanoseconds(chunk.header.stamp), max(stamped))
        topics = {age.input: age.topic for age in chunk.ages}
        self.assertEqual(topics['eef_9d'], f'tf {BASE} {droid.TIP}')
        self.assertEqual(chunk.header.frame_id, BASE)
        groups = {group.name: group for group in chunk.groups}
        self.assertEqual(groups['eef_9d'].frame_id, BASE)
        self.assertEqual(groups['eef_9d'].representation, ActionGroup.POSE_ROT6D)
        self.assertEqual(groups['gripper_position'].representation, ActionGroup.VALUE)

    def test_poses_and_columns_from_topics(self):
        state = droid.parameters('')['state']
        state['eef_9d'] = {'source': 'pose', 'topic': '/eef', 'base_frame': BASE}
        names = [f'column_{joint}' for joint in droid.JOINTS]
        state['joint_position'] = {'source': 'columns', 'topic': '/columns', 'columns': names}
        node, peer = self.start(state=state)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Droid(peer, speaks=('cameras', 'gripper'))
        turn = np.array([0.1, -0.2, 0.3, 0.4]) / np.linalg.norm([0.1, -0.2, 0.3, 0.4])
        numbers = dict(zip(names, np.linspace(-1, 1, len(names)).tolist(), strict=True))

        pose, columns = PoseStamped(), Float64MultiArray()
        pose.header.frame_id = BASE
        place, rotation = pose.pose.position, pose.pose.orientation
        place.x, place.y, place.z = 0.4, -0.1, 0.3
        order = [*names[3:], 'something_else', *names[:3]]
        columns.layout.dim = [MultiArrayDimension(label=name, size=1, stride=1) for name in order]
        columns.data = [numbers.get(name, 77.0) for name in order]
        poses = peer.publisher(PoseStamped, '/eef')
        arrays = peer.publisher(Float64MultiArray, '/columns')
        sign = 1.0

        def publish():
            nonlocal sign
            sign = -sign
            rotation.x, rotation.y, rotation.z, rotation.w = (sign * turn).tolist()
            pose.header.stamp = time_message(robot.now())
            poses.publish(pose)
            arrays.publish(columns)

        robot.every(20.0, publish)
        made = set()
        for _ in range(3):
            chunk = self.chunk(peer, chunks)
            stamps = {(age.input, age.delta): nanoseconds(age.stamp) for age in chunk.ages}
            frames = {key: [robot.pictures[key][stamps[key, delta]] for delta in (-15, 0)] for key in CAMERA_HZ}
            observed = {
                'eef_9d': rot6d([0.4, -0.1, 0.3], matrix(turn).tolist()),
                'gripper_position': [1 - robot.opening / droid.OPEN_M],
                'joint_position': list(numbers.values()),
            }
            self.assert_offline(chunk, frames, observed)
            made.add(sign)

        # Another frame, and an array that is a column short.
        pose.header.frame_id = 'world'
        self.line(node, peer, f"in frame 'world', not in '{BASE}'")
        pose.header.frame_id = BASE
        columns.data = columns.data[:-1]
        self.line(node, peer, 'it has 7 values for the 8 columns')


class PoseArrayTest(DroidTest):
    def test_poses_are_those_of_the_chunk(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        arrays = peer.collect(PoseArray, POSES)
        Droid(peer)
        chunk = self.chunk(peer, chunks)
        same = lambda: [array for array in arrays if array.header.stamp == chunk.header.stamp]
        [array] = peer.wait_for(same, PATIENCE, 'its poses')
        self.assertEqual(array.header.frame_id, BASE)
        self.assertEqual(len(array.poses), chunk.horizon)
        for pose, row in zip(array.poses, values(chunk)['eef_9d'], strict=True):
            turn = [pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w]
            self.assertAlmostEqual(float(np.linalg.norm(turn)), 1.0, places=12)
            place = [pose.position.x, pose.position.y, pose.position.z]
            np.testing.assert_allclose(rot6d(place, matrix(turn)), row, atol=2e-6)

    def test_without_a_frame_there_are_none(self):
        state = droid.parameters('')['state']
        state['eef_9d'] = {'source': 'pose', 'topic': '/eef'}
        node, peer = self.start(state=state)
        self.line(node, peer, "poses of 'eef_9d' are not on ~/eef_9d/poses.*pose_frame")


class RefusalTest(DroidTest):
    def test_what_it_waits_for(self):
        node, peer = self.start(state_max_age_ms=700)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Droid(peer, speaks=('cameras', 'joints', 'gripper'))
        self.line(node, peer, rf'waiting for state eef_9d \(tf {BASE} {droid.TIP}\): no sample yet')
        tf = peer.publisher(TFMessage, '/tf', RELIABLE)
        robot.tf = tf
        robot.speaks.add('tf')
        robot.every(50.0, robot.move)
        self.line(node, peer, f"no pose: frame '{droid.TIP}' is in no transform")
        fixed = peer.publisher(TFMessage, '/tf_static', LATCHED)
        doubled = tuple(2 * part for part in FLANGE_TO_TIP)
        fixed.publish(TFMessage(transforms=[transform(0, droid.FLANGE, droid.TIP, (0, 0, 0.1), doubled)]))
        self.line(node, peer, f"frame '{droid.TIP}': its quaternion .* has length 2.0000")
        peer.spin(0.5)
        self.assertEqual(chunks, [])
        fixed.publish(TFMessage(transforms=[transform(0, droid.FLANGE, droid.TIP, (0, 0, 0.1), FLANGE_TO_TIP)]))
        chunk = self.chunk(peer, chunks)
        self.assert_offline(chunk, *robot.seen(chunk))

        robot.speaks.discard('tf')
        self.line(node, peer, r'state eef_9d .* old \(limit 0.700 s\)')
        count = len(chunks)
        peer.spin(1.0)
        self.assertEqual(len(chunks), count, 'a chunk was published')

    def test_case_43_a_gripper_on_another_scale(self):
        node, peer = self.start(state_max_age_ms=700)
        self.line(node, peer, 'gripper_position: 0.085 is 0 for the policy, 0 is 1')
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Droid(peer)
        self.chunk(peer, chunks)
        robot.opening = 30.0
        self.line(node, peer, f'{GRIPPER_TOPIC} was refused.*30 is outside')
        self.line(node, peer, 'waiting for state gripper_position')

    def test_a_circle_of_transforms(self):
        node, peer = self.start()
        robot = Droid(peer, speaks=('cameras', 'joints', 'gripper'))
        tf = peer.publisher(TFMessage, '/tf', RELIABLE)

        def circle():
            pairs = [(BASE, droid.TIP), (droid.TIP, BASE)]
            stamp = robot.now()
            tf.publish(TFMessage(transforms=[transform(stamp, a, b, (0, 0, 0), (0, 0, 0, 1)) for a, b in pairs]))

        robot.every(20.0, circle)
        self.line(node, peer, 'no pose: the transforms run in a circle')
        self.assertTrue(node.running())


class GoalTest(DroidTest):
    def test_case_36_another_instruction_is_another_goal(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Droid(peer)
        self.chunk(peer, chunks, self.looks_back)
        before = robot.now()
        request = SetInstruction.Request(instruction='fold the towel')
        answer = peer.call(SetInstruction, f'{NODE}/set_instruction', request)
        self.assertTrue(answer.success, answer.message)
        new = lambda chunk: chunk.instruction == 'fold the towel'
        chunk = self.chunk(peer, chunks, new)
        for age in chunk.ages:
            if age.input in CAMERA_HZ:
                self.assertGreaterEqual(nanoseconds(age.stamp), before, f'{age.input} {age.delta}')
        self.assert_offline(chunk, *robot.seen(chunk))
        self.chunk(peer, chunks, lambda chunk: new(chunk) and self.looks_back(chunk))


class ContractTest(DroidTest):
    def test_sources_are_in_the_contract(self):
        node, peer = self.start()
        node.wait_for_log('ready as', PATIENCE)
        contract = peer.call(GetContract, f'{NODE}/get_contract', GetContract.Request()).contract
        eef, gripper, joints = contract.state
        self.assertEqual((eef.source, eef.topic), (StateGroupSpec.TF, f'tf {BASE} {droid.TIP}'))
        self.assertEqual(eef.representation, ActionGroup.POSE_ROT6D)
        self.assertEqual((gripper.source, gripper.topic), (StateGroupSpec.FLOAT, GRIPPER_TOPIC))
        self.assertEqual(list(gripper.source_range), [droid.OPEN_M, 0.0])
        self.assertEqual(list(gripper.model_range), [0.0, 1.0])
        self.assertEqual((joints.source, list(joints.names)), (StateGroupSpec.JOINT_STATE, droid.JOINTS))
        self.assertEqual([list(camera.frame_deltas) for camera in contract.cameras], [[-15, 0]] * 2)
        for camera in contract.cameras:
            least, largest = camera.aspect_ratios
            self.assertTrue(4 / 3 < least < 16 / 9 < largest < 2, camera.aspect_ratios)

    def test_version_is_checked(self):
        for argv in [['node', '--version', 'n16', '--ros-args', '-p', f'snapshot:={self.snapshot}']]:
            done = subprocess.run([node_binary(), *argv], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn('is a checkpoint of n17, not of n16', done.stderr)


if __name__ == '__main__':
    unittest.main()
