"""Recordings and the running node: a bag published with its time, and observations recorded and made again."""

import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, ROOT, Peer, domain, node_binary
from node_case import PATIENCE, NodeCase
from rig import CHUNK, GR1, INSTRUCTION, JOINTS, nanoseconds, synthetic_snapshot
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, JointState

BAG = ROOT / 'demo/pear_to_plate'
# Messages of a loaded test machine come late.
MAX_AGE_MS = 3000


class ReplayCase(NodeCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.snapshot = synthetic_snapshot('tiny')

    def parameters(self, **changes):
        made = GR1 | {'snapshot': str(self.snapshot), 'instruction': INSTRUCTION, 'threads': 1, 'rate_hz': 5.0}
        made |= {'camera_max_age_ms': MAX_AGE_MS, 'state_max_age_ms': MAX_AGE_MS, 'use_sim_time': True}
        return made | {'record_observations': str(self.folder / 'observations')} | changes

    def publish(self, peer, *arguments):
        """The bag onto its topics, in the peer's domain."""
        domain = peer.node.context.get_domain_id()
        player = subprocess.Popen(
            [node_binary(), 'replay', BAG, '--publish', *arguments],
            env=os.environ | {'ROS_DOMAIN_ID': str(domain)},
            stderr=subprocess.PIPE,
            text=True,
        )

        def end():
            player.kill()
            player.communicate()

        self.addCleanup(end)
        return player

    def replay(self, *arguments):
        argv = [node_binary(), 'replay', *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=10 * PATIENCE)


class PublishTest(ReplayCase):
    def test_messages_and_their_time_are_those_of_the_recording(self):
        number = self.enterContext(domain())
        peer = self.enterContext(Peer(number, f'peer_{number}'))
        clock = peer.collect(Clock, '/clock')
        player = self.publish(peer, '--factor', '4')
        # It begins when somebody listens to the topics of the recording; by then both ends of the clock know each other.
        peer.wait_for(lambda: peer.node.count_publishers('/clock'), PATIENCE, 'the clock')
        peer.spin(1.0)
        joints = peer.collect(JointState, '/joint_states')
        peer.collect(CompressedImage, '/camera/ego_view/image/compressed')
        peer.wait_for(lambda: player.poll() is not None, PATIENCE, 'the end of the recording')
        self.assertEqual(player.returncode, 0, player.stderr.read())
        peer.spin(0.3)
        told = [nanoseconds(message.clock) for message in clock]
        self.assertEqual(told, sorted(told))
        stamps = [nanoseconds(message.header.stamp) for message in joints]
        metadata = yaml.safe_load((BAG / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
        begin = metadata['starting_time']['nanoseconds_since_epoch']
        self.assertEqual(told[0], begin)
        self.assertLess(begin + metadata['duration']['nanoseconds'] - told[-1], 100_000_000)
        # The stamps are those of the recording, and the time is told more often than the joints are.
        self.assertGreater(len(told), len(stamps))
        self.assertTrue(all(begin - 1_000_000_000 < stamp <= told[-1] for stamp in stamps))
        self.assertLessEqual(set(JOINTS), set(joints[0].name))


class RecordTest(ReplayCase):
    def run_and_record(self, count, **changes):
        """A node that has published at least so many chunks, from its start to its end; its recording."""
        node, peer = self.start_node(self.parameters(**changes))
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        player = self.publish(peer)
        peer.wait_for(lambda: len(chunks) >= count or player.poll() is not None, PATIENCE, f'{count} chunks')
        peer.spin(0.3)
        self.assertGreaterEqual(len(chunks), count)
        return node, chunks

    def recording(self):
        return self.folder / 'observations'

    def test_every_chunk_is_made_again_bit_for_bit(self):
        # What limits do to a chunk is not the policy's.
        limited = {group: {'velocity_max': [0.01]} for group in ('left_arm', 'right_arm')}
        node, chunks = self.run_and_record(4, limit_violation='clamp', action=limited)
        self.assertEqual(node.stop().code, 0)
        made = self.replay(self.recording())
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        same = int(made.stdout.split(' prediction(s) gave the same bytes again')[0].split()[-1])
        self.assertGreaterEqual(same, len(chunks))
        meaningless = self.replay(self.recording(), '--rate', '5')
        self.assertEqual(meaningless.returncode, 2, meaningless.stderr)
        self.assertIn('--rate', meaningless.stderr)
        other = self.replay(self.recording(), '-p', 'embodiment:=libero_panda')
        self.assertEqual(other.returncode, 1, other.stdout)

    def test_a_killed_node_leaves_what_it_had_recorded(self):
        node, chunks = self.run_and_record(3)
        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
        made = self.replay(self.recording())
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertIn('never finished', made.stdout)

    def test_a_directory_that_cannot_be_made_is_named(self):
        blocked = self.folder / 'file'
        blocked.write_text('')
        node, peer = self.start_node(self.parameters(record_observations=str(blocked / 'below'), use_sim_time=False))
        self.line(node, peer, f"record_observations.*{blocked}")


if __name__ == '__main__':
    unittest.main()
