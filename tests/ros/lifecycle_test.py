"""The node as a managed one: the walk through its states, and what it does in each."""

import time
import unittest

from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk
from gr00t_blackhole.srv import GetContract
from harness import LATCHED, RELIABLE
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from node_case import PATIENCE, NodeCase
from rig import CHUNK, JOINTS, NODE, TRAJECTORY, Robot, parameters, synthetic_snapshot
from trajectory_msgs.msg import JointTrajectory


class LifecycleTest(NodeCase):
    size = 'tiny'

    def start(self, **changes):
        given = parameters(synthetic_snapshot(self.size), **({'autostart': False} | changes))
        self.node, self.peer = self.start_node(given)
        self.chunks = self.peer.collect(ActionChunk, CHUNK, LATCHED)
        self.events = self.peer.collect(TransitionEvent, f'{NODE}/transition_event', RELIABLE)

    def change(self, number=0, label='', timeout=PATIENCE):
        request = ChangeState.Request(transition=Transition(id=number, label=label))
        return self.peer.call(ChangeState, f'{NODE}/change_state', request, timeout).success

    def state(self):
        return self.peer.call(GetState, f'{NODE}/get_state', GetState.Request()).current_state.label

    def wait_for_chunk(self):
        count = len(self.chunks)
        self.peer.wait_for(lambda: len(self.chunks) > count, PATIENCE, 'a chunk')

    def assert_silent(self):
        self.peer.spin(0.3)
        count = len(self.chunks)
        self.peer.spin(0.6)
        self.assertEqual(len(self.chunks), count, 'a chunk was published')

    def test_the_walk(self):
        self.start()
        self.assertEqual(self.state(), 'unconfigured')
        answer = self.peer.call(GetAvailableStates, f'{NODE}/get_available_states', GetAvailableStates.Request())
        self.assertEqual(len(answer.available_states), 11)
        transitions = lambda service: [
            (t.start_state.label, t.transition.id, t.transition.label)
            for t in self.peer.call(
                GetAvailableTransitions, f'{NODE}/{service}', GetAvailableTransitions.Request()
            ).available_transitions
        ]
        offered = transitions('get_available_transitions')
        self.assertEqual(
            offered,
            [
                ('unconfigured', Transition.TRANSITION_CONFIGURE, 'configure'),
                ('unconfigured', Transition.TRANSITION_UNCONFIGURED_SHUTDOWN, 'shutdown'),
            ],
        )
        self.assertIn(('active', Transition.TRANSITION_DEACTIVATE, 'deactivate'), transitions('get_transition_graph'))
        self.assertFalse(self.change(Transition.TRANSITION_ACTIVATE))
        contract = self.peer.call(GetContract, f'{NODE}/get_contract', GetContract.Request())
        self.assertFalse(contract.success)
        self.assertIn('configure', contract.message)

        self.assertTrue(self.change(Transition.TRANSITION_CONFIGURE))
        self.assertEqual(self.state(), 'inactive')
        self.assertTrue(self.peer.call(GetContract, f'{NODE}/get_contract', GetContract.Request()).success)
        self.assertEqual(self.peer.node.count_subscribers('/joint_states'), 0)
        self.assertTrue(self.change(label='activate'))
        robot = Robot(self.peer)
        self.wait_for_chunk()
        self.assertEqual(self.chunks[0].sequence, 0)
        trajectories = self.peer.collect(JointTrajectory, TRAJECTORY)
        self.wait_for_chunk()
        self.assertTrue(self.change(Transition.TRANSITION_DEACTIVATE))
        self.assertEqual(self.state(), 'inactive')
        self.peer.wait_for(lambda: trajectories and len(trajectories[-1].points) == 1, PATIENCE, 'the trajectory that holds the arm')
        stop = trajectories[-1]
        self.assertEqual(list(stop.points[0].positions), [robot.joints[0][joint] for joint in JOINTS])
        self.assert_silent()
        # rcl's subscriptions go with the next message at the latest.
        self.peer.wait_for(lambda: self.peer.node.count_subscribers('/joint_states') == 0, PATIENCE, 'no subscription')

        self.assertTrue(self.change(Transition.TRANSITION_ACTIVATE))
        self.wait_for_chunk()
        self.assertEqual(min(chunk.sequence for chunk in self.chunks[-1:]), 0)
        self.assertFalse(self.change(Transition.TRANSITION_CLEANUP), 'not while active')
        self.assertTrue(self.change(Transition.TRANSITION_DEACTIVATE))
        self.assertTrue(self.change(Transition.TRANSITION_CLEANUP))
        self.assertEqual(self.state(), 'unconfigured')
        self.assertEqual(self.peer.node.count_publishers(CHUNK), 0)
        self.assertTrue(self.change(label='shutdown'))
        self.assertEqual(self.state(), 'finalized')
        self.assertFalse(self.change(Transition.TRANSITION_CONFIGURE))
        walked = [(event.start_state.label, event.goal_state.label) for event in self.events]
        self.assertEqual(walked[:4], [
            ('unconfigured', 'configuring'),
            ('configuring', 'inactive'),
            ('inactive', 'activating'),
            ('activating', 'active'),
        ])
        self.assertEqual(walked[-1], ('shuttingdown', 'finalized'))
        self.assertEqual(self.node.stop().code, 0)

    def test_what_cannot_be_configured_stays_unconfigured(self):
        for changes, reason in [
            ({'snapshot': '/nowhere/at/all'}, '/nowhere/at/all'),
            ({'embodiment': 'gr2'}, 'gr1'),
            ({'execute_steps': 17}, "'execute_steps' is 17; a chunk of 'gr1' has 16 rows"),
        ]:
            with self.subTest(reason=reason):
                self.start(**changes)
                self.assertFalse(self.change(Transition.TRANSITION_CONFIGURE))
                self.line(self.node, self.peer, reason)
                self.assertEqual(self.state(), 'unconfigured')
                self.assertFalse(self.change(Transition.TRANSITION_ACTIVATE))

    def test_case_34_deactivated_in_the_middle_of_a_goal(self):
        self.size = 'mid'
        self.start(autostart=True, rate_hz=0.0)
        Robot(self.peer)
        trajectories = self.peer.collect(JointTrajectory, TRAJECTORY)
        # Before the transition's time is taken.
        self.peer.client(ChangeState, f'{NODE}/change_state')
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        stages = []
        goal = client.send_goal_async(
            PredictChunk.Goal(chunks=100), lambda message: stages.append(message.feedback.stage)
        )
        self.peer.wait_for(lambda: 'vision' in stages, PATIENCE, 'the stage vision')
        result = goal.result().get_result_async()
        self.peer.spin(0.05)
        begin = time.monotonic()
        self.assertTrue(self.change(Transition.TRANSITION_DEACTIVATE))
        self.assertLess(time.monotonic() - begin, 2.0)
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        self.assertEqual(result.result().result.reason, PredictChunk.Result.DEACTIVATED)
        holds = lambda: trajectories and len(trajectories[-1].points) == 1
        self.peer.wait_for(holds, PATIENCE, 'the trajectory that holds the arm')
        refused = client.send_goal_async(PredictChunk.Goal(chunks=1))
        self.peer.wait_for(refused.done, PATIENCE, 'an answer')
        self.assertFalse(refused.result().accepted)
        self.assertTrue(self.change(Transition.TRANSITION_ACTIVATE))
        accepted = client.send_goal_async(PredictChunk.Goal(chunks=1))
        self.peer.wait_for(accepted.done, PATIENCE, 'an answer')
        self.assertTrue(accepted.result().accepted)

    def test_case_89_loading_again_takes_no_more_memory(self):
        self.start(autostart=True)
        Robot(self.peer)
        self.wait_for_chunk()
        self.assertTrue(self.change(Transition.TRANSITION_DEACTIVATE))
        self.assertTrue(self.change(Transition.TRANSITION_CLEANUP))
        sizes = []
        for _ in range(40):
            self.assertTrue(self.change(Transition.TRANSITION_CONFIGURE))
            self.assertTrue(self.change(Transition.TRANSITION_ACTIVATE))
            self.peer.spin(0.2)
            self.assertTrue(self.change(Transition.TRANSITION_DEACTIVATE))
            # A message each, with which rcl's subscriptions go.
            self.peer.spin(0.2)
            self.assertTrue(self.change(Transition.TRANSITION_CLEANUP))
            sizes.append(self.node.resident_bytes())
        # The allocator takes 5 MiB at once, and gives them back at times: so many loads that less than half a MiB of each would
        # be seen beside that.
        self.assertLess(sizes[-1] - sizes[0], 16 << 20, [size >> 20 for size in sizes])
        self.assertEqual(self.state(), 'unconfigured')
        self.assertEqual(State.PRIMARY_STATE_UNCONFIGURED, 1)


if __name__ == '__main__':
    unittest.main()
