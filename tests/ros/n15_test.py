"""N1.5 through the node with the parameters that come with the package, and through `predict`; its data configs."""

import json
import subprocess
import unittest

import yaml
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, ROOT, node_binary
from node_case import PATIENCE, NodeCase
from rig import CAMERA_TOPIC, CHUNK, INSTRUCTION, Robot, nanoseconds, predict, synthetic_snapshot
from rig import GROUPS as N16_GROUPS

GR1 = yaml.safe_load((ROOT / 'config/gr1_n15.yaml').read_text())['/**']['ros__parameters']
CAMERA = 'ego_view'


def parameters(snapshot, **changes):
    """Parameters of a node that serves the robot with raw frames; `changes` are added on top."""
    made = json.loads(json.dumps(GR1))
    made['camera'][CAMERA] = {'topic': CAMERA_TOPIC, 'transport': 'raw'}
    made |= {'camera_max_age_ms': 3000, 'state_max_age_ms': 3000, 'rate_hz': 5.0}
    return made | {'snapshot': str(snapshot), 'instruction': INSTRUCTION, 'threads': 1} | changes


class N15Test(NodeCase):
    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny', 'n15')

    def assert_offline(self, made, arguments=()):
        """A chunk of a node with these parameters has the bytes that the offline command computes from the same."""
        _, peer = self.start_node(made)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        peer.wait_for(lambda: chunks, PATIENCE, 'a chunk')
        chunk = chunks[0]
        self.assertEqual((chunk.version, chunk.horizon, chunk.seed), ('n15', 16, 0))
        stamps = {age.input: nanoseconds(age.stamp) for age in chunk.ages}
        rgb, positions = robot.pictures[stamps[CAMERA]], robot.poses[stamps['left_arm']]
        state = {group: [positions[joint] for joint in entry['joints']] for group, entry in made['state'].items()}
        expected = predict(self.snapshot, 'gr1', {CAMERA: [rgb]}, state, chunk.seed, chunk.instruction, arguments)
        self.assert_same_bytes(chunk, expected)

    def test_same_bytes_as_predict(self):
        self.assert_offline(parameters(self.snapshot))

    def test_another_data_config(self):
        name = 'fourier_gr1_arms_waist'
        state = GR1['state'] | {'waist': {'joints': N16_GROUPS['waist']}}
        self.assert_offline(parameters(self.snapshot, data_config=name, state=state), ['--data-config', name])

    def test_choices_that_the_checkpoint_does_not_leave(self):
        n16 = synthetic_snapshot('tiny')
        for snapshot, parameter, sentence in (
            (self.snapshot, 'data_config:=so100', "data config 'so100' does not fit: there is no camera 'webcam'"),
            (self.snapshot, 'data_config:=gr1', "n15 knows no data config 'gr1'; it has: "),
            (n16, 'data_config:=so100', "n16 knows no data config 'so100'; only n15 has data configs"),
            (n16, 'letterbox:=off', 'letterbox is off, but only n17 has the choice'),
        ):
            with self.subTest(parameter, snapshot=snapshot):
                argv = [node_binary(), 'node', '--ros-args', '-p', f'snapshot:={snapshot}', '-p', 'embodiment:=gr1']
                done = subprocess.run([*argv, '-p', parameter], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stderr.count(sentence), 1, done.stderr)


if __name__ == '__main__':
    unittest.main()
