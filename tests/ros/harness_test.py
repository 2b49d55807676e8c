"""The helpers themselves, and the interfaces as rclpy sees them."""

import signal
import sys
import time
import unittest

import numpy as np
from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk, ActionGroup, ObservationAge, StageTiming
from gr00t_blackhole.srv import GetContract, SetInstruction
from harness import LATCHED, NodeProcess, Peer, domain
from rclpy.serialization import deserialize_message, serialize_message

# A program that behaves like a node, and ends 0.3 s after SIGINT with status 0.
WELL_BEHAVED = """
import os, signal, sys, time
print('domain', os.environ['ROS_DOMAIN_ID'], 'arguments', sys.argv[1:], flush=True)
def end(*_):
    time.sleep(0.3)
    sys.exit(0)
signal.signal(signal.SIGINT, end)
print('ready', flush=True)
time.sleep(60)
"""

DEAF = WELL_BEHAVED.replace('signal.signal(signal.SIGINT, end)', 'signal.signal(signal.SIGINT, signal.SIG_IGN)')


def program(text):
    return [sys.executable, '-c', text]


def chunk():
    message = ActionChunk(version='n16', embodiment='gr1', horizon=2, dt=0.05, seed=2**64 - 1)
    message.header.stamp.sec = 12
    group = ActionGroup(name='waist', representation=ActionGroup.JOINT_POSITION, dim=3)
    group.joint_names = ['yaw', 'pitch', 'roll']
    group.values = np.array([0.1, -0.2, 0.3, 1e-38, -0.0, 3e38], dtype=np.float32)
    message.groups = [group]
    message.timings = [StageTiming(stage='encode', seconds=0.00125)]
    message.ages = [ObservationAge(input='ego_view', topic='/camera', delta=-15, age=0.034)]
    return message


class ProcessTest(unittest.TestCase):
    def test_parameters_log_and_a_clean_end(self):
        with domain() as number, NodeProcess({'seed': 7}, domain_id=number, command=program(WELL_BEHAVED)) as node:
            first = node.wait_for_log(r'domain (\d+) arguments (.*)')
            self.assertEqual(int(first[1]), number)
            self.assertIn('--params-file', first[2])
            node.wait_for_log('^ready$')
            self.assertGreater(node.resident_bytes(), 1_000_000)
            report = node.stop()
        self.assertEqual(report.code, 0)
        self.assertGreaterEqual(report.seconds, 0.3)
        self.assertLess(report.seconds, 2.0)

    def test_a_process_that_does_not_stop_fails_the_test_and_is_ended(self):
        with domain() as number, NodeProcess(domain_id=number, command=program(DEAF)) as node:
            node.wait_for_log('ready')
            with self.assertRaisesRegex(AssertionError, 'still ran 0.2 s after SIGINT'):
                node.stop(limit=0.2)
        self.assertEqual(node.process.returncode, -signal.SIGKILL)

    def test_a_line_that_never_comes(self):
        with domain() as number, NodeProcess(domain_id=number, command=program('print("bye")')) as node:
            with self.assertRaisesRegex(AssertionError, 'ended with 0 before it logged'):
                node.wait_for_log('ready')

    def test_domains_differ(self):
        with domain() as first, domain() as second:
            self.assertNotEqual(first, second)


class InterfacesTest(unittest.TestCase):
    def test_a_chunk_survives_the_wire(self):
        sent = chunk()
        received = deserialize_message(serialize_message(sent), ActionChunk)
        self.assertEqual(received, sent)
        self.assertEqual(
            np.asarray(received.groups[0].values, np.float32).tobytes(), sent.groups[0].values.tobytes()
        )

    def test_services_and_action_are_there(self):
        self.assertEqual(SetInstruction.Request(instruction='wave').instruction, 'wave')
        self.assertEqual(GetContract.Response().contract.cameras, [])
        self.assertEqual(PredictChunk.Result(reason=PredictChunk.Result.STALE_INPUT).reason, 4)
        self.assertEqual(PredictChunk.Feedback().stage, '')

    def test_a_late_joiner_gets_the_latched_chunk(self):
        with domain() as number, Peer(number, 'early') as early:
            publisher = early.publisher(ActionChunk, '/policy/action_chunk', LATCHED, subscribers=0)
            publisher.publish(chunk())
            time.sleep(0.2)
            with Peer(number, 'late') as late:
                chunks = late.collect(ActionChunk, '/policy/action_chunk', LATCHED)
                late.wait_for(lambda: chunks, 10, 'the latched chunk')
                self.assertEqual(chunks[0], chunk())

    def test_domains_do_not_hear_each_other(self):
        with domain() as here, domain() as there, Peer(here, 'sender') as sender, Peer(there, 'listener') as listener:
            chunks = listener.collect(ActionChunk, '/chunk', LATCHED)
            sender.publisher(ActionChunk, '/chunk', LATCHED, subscribers=0).publish(chunk())
            listener.spin(1.0)
            self.assertEqual(chunks, [])


if __name__ == '__main__':
    unittest.main()
