"""Who publishes what, and how, on the topics that the node reads: quality of service, types, silence, remappings."""

import unittest

from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, RELIABLE, SENSOR_DATA, Peer
from node_case import PATIENCE
from node_test import NodeTest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rig import CAMERA_TOPIC, CHUNK, JOINT_TOPIC, TRAJECTORY, Robot
from sensor_msgs.msg import CompressedImage, Image, JointState

# Longer than the node waits before it calls a publisher silent [s].
SILENCE = 3.0


def overrides(topic, end='subscription', **policies):
    """The parameter `qos_overrides` of one topic."""
    return {topic: {end: policies}}


class QosTest(NodeTest):
    def count(self, node, text):
        return node.log().count(text)

    def test_case_26_publishers_of_both_reliabilities_are_received(self):
        node, peer = self.start(state_publishers_max=2)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        for qos in [RELIABLE, SENSOR_DATA]:
            peer.node.destroy_publisher(robot.camera)
            peer.node.destroy_publisher(robot.joint_states)
            robot.camera = peer.publisher(Image, CAMERA_TOPIC, qos)
            robot.joint_states = peer.publisher(JointState, JOINT_TOPIC, qos)
            self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.assertNotIn('incompatible', node.log())

    def test_case_26_incompatible_reliability_is_told_once(self):
        node, peer = self.start(qos_overrides=overrides(CAMERA_TOPIC, reliability='reliable', depth=3))
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        peer.node.create_publisher(Image, CAMERA_TOPIC, SENSOR_DATA)
        line = self.line(node, peer, f'{CAMERA_TOPIC}.*incompatible')
        for part in [
            '/peer_',
            'incompatible reliability',
            'offers (best_effort, volatile',
            'asks for (reliable, volatile, keep_last 3)',
            f'`qos_overrides.{CAMERA_TOPIC}.subscription.reliability` to best_effort',
        ]:
            self.assertIn(part, line)
        peer.spin(SILENCE + 1.5)
        self.assertEqual(self.count(node, 'incompatible'), 1)
        # Nobody can be heard, so that nobody is silent.
        self.assertNotIn('nothing has come', node.log())
        self.assertEqual(chunks, [])

    def test_case_26_incompatible_durability_is_told(self):
        node, peer = self.start(
            qos_overrides=overrides(JOINT_TOPIC, reliability='reliable', durability='transient_local')
        )
        peer.node.create_publisher(JointState, JOINT_TOPIC, SENSOR_DATA)
        line = self.line(node, peer, 'incompatible reliability and durability')
        self.assertIn(f'`qos_overrides.{JOINT_TOPIC}.subscription.durability` to volatile', line)

    def test_case_64_any_profile_of_a_recording_is_received(self):
        _, peer = self.start(state_publishers_max=0)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        for reliability in [ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT]:
            for durability in [DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE]:
                with self.subTest(reliability=reliability, durability=durability):
                    qos = QoSProfile(depth=7, reliability=reliability, durability=durability)
                    peer.node.destroy_publisher(robot.camera)
                    peer.node.destroy_publisher(robot.joint_states)
                    robot.camera = peer.publisher(Image, CAMERA_TOPIC, qos)
                    robot.joint_states = peer.publisher(JointState, JOINT_TOPIC, qos)
                    self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_another_type_is_told_once(self):
        node, peer = self.start()
        peer.node.create_publisher(CompressedImage, CAMERA_TOPIC, SENSOR_DATA)
        line = self.line(node, peer, f'{CAMERA_TOPIC}.*publishes sensor_msgs/msg/CompressedImage')
        self.assertIn('sensor_msgs/msg/Image is read', line)
        self.assertIn('/peer_', line)
        self.assertIn('.transport`', line)
        peer.spin(2.5)
        self.assertEqual(self.count(node, 'CompressedImage'), 1)

    def test_a_silent_publisher_is_told_once(self):
        node, peer = self.start()
        robot = Robot(peer)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        self.chunk_after(peer, chunks)
        self.assertNotIn('nothing has come', node.log())
        robot.joints = None
        line = self.line(node, peer, f'{JOINT_TOPIC}.*nothing has come')
        self.assertIn('/peer_', line)
        self.assertIn('gr00t_blackhole doctor', line)
        peer.spin(2.5)
        self.assertEqual(self.count(node, 'nothing has come'), 1)

    def test_two_publishers_of_joint_states_are_one_too_many(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        with Peer(peer.domain_id, 'second_driver') as second:
            second.node.create_publisher(JointState, JOINT_TOPIC, SENSOR_DATA)
            line = self.line(node, peer, f'waiting for .*{JOINT_TOPIC}.*/second_driver')
            self.assertIn(f'/{peer.name}', line)
            self.assertIn('state_publishers_max', line)
            peer.spin(0.3)
            count = len(chunks)
            peer.spin(0.8)
            self.assertEqual(len(chunks), count, 'a chunk was published')
        self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_remapped_topics_are_watched_by_their_new_names(self):
        camera, joints = '/front/image', '/arm/states'
        node, peer = self.start(
            ['-r', f'{CAMERA_TOPIC}:={camera}', '--remap', f'joint_states:={joints}', '-r', '~/action_chunk:=/chunk'],
            state_publishers_max=1,
        )
        chunks = peer.collect(ActionChunk, '/chunk', LATCHED)
        silent = peer.node.create_publisher(JointState, joints, RELIABLE)
        self.assertIn('/peer_', self.line(node, peer, f'{joints} .*nothing has come'))
        robot = Robot(peer, camera_topic=camera, joint_topic=joints)
        # The gate counts the publishers of the new name, too.
        self.line(node, peer, 'waiting for .*state_publishers_max')
        peer.node.destroy_publisher(silent)
        self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_remapped_topics_are_overridden_by_their_new_names(self):
        node, peer = self.start(
            ['-r', f'{CAMERA_TOPIC}:=/front/image'], qos_overrides=overrides('/front/image', reliability='reliable')
        )
        peer.node.create_publisher(Image, '/front/image', SENSOR_DATA)
        self.line(node, peer, '/front/image .*incompatible reliability')

    def test_outputs_have_the_quality_that_is_asked_for(self):
        _, peer = self.start(
            qos_overrides=overrides(CHUNK, 'publisher', durability='volatile')
            | overrides(TRAJECTORY, 'publisher', reliability='best_effort')
        )
        offered = {}

        def found():
            for topic in [CHUNK, TRAJECTORY]:
                for info in peer.node.get_publishers_info_by_topic(topic):
                    offered[topic] = (info.qos_profile.reliability, info.qos_profile.durability)
            return len(offered) == 2

        peer.wait_for(found, PATIENCE, 'both publishers')
        self.assertEqual(offered[CHUNK], (ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE))
        self.assertEqual(offered[TRAJECTORY], (ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE))

    def test_overrides_that_do_not_fit_end_the_start(self):
        for given, expected in [
            (overrides('/joint_state', depth=3), f"did you mean 'qos_overrides.{JOINT_TOPIC}.subscription.depth'"),
            (overrides(JOINT_TOPIC, reliability='always'), "one of 'reliable', 'best_effort', 'system_default'"),
            (overrides(JOINT_TOPIC, depth=0), 'is 1 to 10000, not 0'),
        ]:
            with self.subTest(given=given):
                node, _ = self.start(qos_overrides=given)
                self.assertEqual(node.process.wait(PATIENCE), 2)
                node._reader.join(1)
                self.assertIn(expected, node.log())


if __name__ == '__main__':
    unittest.main()
