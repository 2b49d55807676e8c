"""The node's log: on /rosout for rqt_console, as JSON, and with the time of every stage."""

import json
import os
import re
import subprocess
import unittest

from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, SENSOR_DATA, NodeProcess, Peer, domain, node_binary
from node_case import PATIENCE, NodeCase
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from rig import CAMERA_TOPIC, CHUNK, Robot, nanoseconds, parameters, synthetic_snapshot
from sensor_msgs.msg import CompressedImage

ROSOUT = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# What the node warns of where a topic has a publisher of another type.
OTHER_TYPE = ' WARN .*CompressedImage'


class LogTest(NodeCase):
    def setUp(self):
        self.snapshot = synthetic_snapshot('tiny')
        self.number = self.enterContext(domain())

    def start(self, arguments=(), **environment):
        given = parameters(self.snapshot)
        process = NodeProcess(given, domain_id=self.number, arguments=arguments, environment=environment)
        self.node = self.enterContext(process)
        self.peer = self.enterContext(Peer(self.number))
        return self.node, self.peer

    def test_rosout_has_the_lines_of_standard_error(self):
        node, peer = self.start(['-r', '__ns:=/left'])
        lines = peer.collect(Log, '/rosout', ROSOUT)
        peer.node.create_publisher(CompressedImage, CAMERA_TOPIC, SENSOR_DATA)
        self.line(node, peer, OTHER_TYPE)
        own = lambda: [line for line in lines if line.name == 'left.policy' and line.file.endswith('.rs')]
        warned = peer.wait_for(
            lambda: [line for line in own() if 'CompressedImage' in line.msg], PATIENCE, 'the warning'
        )[0]
        self.assertEqual(warned.level, Log.WARN)
        self.assertTrue(warned.file.startswith('src/node/') and warned.line > 0, warned)
        self.assertLess(abs(nanoseconds(warned.stamp) - peer.node.get_clock().now().nanoseconds), PATIENCE * 10**9)
        # A late subscriber also gets what came before it.
        self.assertTrue(any(line.msg.startswith('loading ') for line in own()), own())
        for line in own():
            self.assertIn(line.msg.split('\n')[0], node.log())

    def test_json_lines_hold_the_stamp_and_the_time_of_every_stage(self):
        node, peer = self.start(GR00T_LOG_FORMAT='json', RUST_LOG='info,gr00t_blackhole=debug')
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        Robot(peer)
        chunk = peer.wait_for(lambda: chunks, PATIENCE, 'a chunk')[0]
        node.stop()
        lines = [json.loads(line) for line in node.log().splitlines() if line.startswith('{')]
        self.assertGreater(len(lines), 10)
        closed = [line for line in lines if line['fields'].get('message') == 'close']
        stamp = nanoseconds(chunk.header.stamp)
        times = {
            line['span']['stage']: line['fields']['time.busy']
            for line in closed
            if line['span']['name'] == 'stage' and line['spans'][0].get('stamp_ns') == stamp
        }
        self.assertEqual(set(times), {timing.stage for timing in chunk.timings})
        self.assertTrue(all(re.fullmatch(r'[\d.]+(ns|µs|ms|s)', time) for time in times.values()), times)
        self.assertTrue(any(line['span'].get('stamp_ns') == stamp for line in closed))

    def test_levels(self):
        for arguments, environment, debug, info in [
            ([], {'RUST_LOG': ''}, False, True),
            (['--log-level', 'debug'], {'RUST_LOG': ''}, True, True),
            (['--log-level', 'WARN'], {'RUST_LOG': ''}, False, False),
            (['--log-level', 'debug'], {'RUST_LOG': 'info'}, False, True),
        ]:
            with self.subTest(arguments=arguments, environment=environment):
                given = parameters(self.snapshot)
                process = NodeProcess(
                    given, domain_id=self.number, arguments=arguments, environment=environment
                )
                with process as node, Peer(self.number) as peer:
                    peer.node.create_publisher(CompressedImage, CAMERA_TOPIC, SENSOR_DATA)
                    self.line(node, peer, OTHER_TYPE)
                    node.stop()
                self.assertEqual('time.busy' in node.log(), debug)
                self.assertEqual(' INFO gr00t_blackhole' in node.log(), info)


class UsageTest(unittest.TestCase):
    def run_contract(self, arguments=(), **environment):
        argv = [node_binary(), *arguments, 'contract', '--snapshot', synthetic_snapshot('tiny')]
        return subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, text=True)

    def test_what_cannot_be_used_is_refused_with_a_sentence(self):
        for arguments, environment, expected in [
            ([], {'RUST_LOG': 'loud'}, "RUST_LOG is 'loud': 'loud' is no level; give off, error"),
            ([], {'RUST_LOG': 'info,r2r=loud'}, "RUST_LOG is 'info,r2r=loud'"),
            ([], {'GR00T_LOG_FORMAT': 'xml'}, "'xml' for '--log-format"),
            (['--log-format', 'xml'], {}, 'possible values: text, json'),
        ]:
            with self.subTest(arguments=arguments, environment=environment):
                ended = self.run_contract(arguments, **environment)
                self.assertEqual(ended.returncode, 2, ended)
                self.assertIn(expected, ended.stderr)
                self.assertNotIn('panicked', ended.stderr)
        self.assertEqual(self.run_contract(['--log-format', 'json'], RUST_LOG='debug').returncode, 0)


if __name__ == '__main__':
    unittest.main()
