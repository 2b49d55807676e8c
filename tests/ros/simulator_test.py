"""The node on a simulated card: minutes for each chunk. Passed over where TT_METAL_SIMULATOR names no simulator."""

import os
import unittest

import numpy as np
from diagnostics_test import BACKEND, OK, DiagnosticsCase, levels
from gr00t_blackhole.action import PredictChunk
from node_case import PATIENCE
from rig import INSTRUCTION, NODE, Robot, offline_chunk, parameters, picture, pose, values

# Longest time for a start or a chunk [s]; the simulator is slow, and slower still beside others.
LIMIT_S = 3600

# As the fidelity gate's own floor.
LEAST_CORRELATION = 0.999

SEED = 7


@unittest.skipUnless(os.environ.get('TT_METAL_SIMULATOR'), 'TT_METAL_SIMULATOR names no simulator')
class SimulatorTest(DiagnosticsCase):
    def predict(self, client):
        """Group name to values of the one chunk of a goal."""
        goal = PredictChunk.Goal(instruction=INSTRUCTION, chunks=1, seed=SEED, seed_given=True)
        accepted = client.send_goal_async(goal)
        self.peer.wait_for(accepted.done, PATIENCE, 'an answer to the goal')
        result = accepted.result().get_result_async()
        self.peer.wait_for(result.done, LIMIT_S, 'the result')
        ended = result.result().result
        self.assertEqual(ended.reason, PredictChunk.Result.SUCCEEDED, ended.message)
        return values(ended.last_chunk)

    def test_case_23_the_same_bytes_twice(self):
        # The fidelity gate predicts once, and holds the chunk to what the CPU computes in f32.
        given = {'backend': 'sim', 'rate_hz': 0.0, 'warm_up': 0, 'goal_max_duration_s': float(LIMIT_S)}
        self.start(**given)

        def ready(level, message, values):
            self.assertTrue(self.node.running(), 'the node has ended')
            return values.get('device state') == 'ready' and 'fidelity' in values

        level, _, status = self.wait_for_status(BACKEND, ready, 'the device is ready', LIMIT_S)
        self.assertEqual(level, *levels(OK))
        print(f'\n{status}', flush=True)
        robot = Robot(self.peer)
        rgb, positions = picture(256, 256, 3), pose(3)
        robot.show(rgb)
        robot.hold(positions)
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        first, second = self.predict(client), self.predict(client)
        expected = offline_chunk(self.snapshot, rgb, positions, SEED)
        self.assertEqual(list(first), list(expected))
        for name, rows in first.items():
            self.assertEqual(rows.tobytes(), second[name].tobytes(), name)
            correlation = np.corrcoef(rows.ravel(), expected[name].ravel())[0, 1]
            difference = np.abs(rows - expected[name]).max()
            print(f'{name}: correlation {correlation:.6f}, largest difference {difference:.6f}', flush=True)
            self.assertGreater(correlation, LEAST_CORRELATION, name)
        self.assertEqual(self.node.stop().code, 0)


if __name__ == '__main__':
    unittest.main()
