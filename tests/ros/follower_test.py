"""Trajectories as goals of a controller, with rclpy's own action server as the controller."""

import threading
import time
import unittest

import numpy as np
from control_msgs.action import FollowJointTrajectory
from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED
from node_case import PATIENCE, NodeCase
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rig import CHUNK, GROUPS, JOINTS, NODE, Robot, parameters, synthetic_snapshot, values

CONTROLLER = '/joint_trajectory_controller/follow_joint_trajectory'


class Controller:
    """Follows one goal at a time; a new one takes the place of the one before."""

    def __init__(self, peer, accepts=True):
        self.accepts, self.goals, self.cancelled, self.current = accepts, [], [], None
        self.closed = threading.Event()
        self.server = ActionServer(
            peer.node,
            FollowJointTrajectory,
            CONTROLLER,
            self.follow,
            goal_callback=self.arrives,
            cancel_callback=lambda goal: self.cancelled.append(bytes(goal.goal_id.uuid)) or CancelResponse.ACCEPT,
            callback_group=ReentrantCallbackGroup(),
        )

    def arrives(self, request):
        self.goals.append(request.trajectory)
        return GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT

    def follow(self, goal):
        self.current = goal
        while self.current is goal and not goal.is_cancel_requested and not self.closed.is_set():
            time.sleep(0.01)
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return FollowJointTrajectory.Result()


class FollowerTest(NodeCase):
    def start(self, accepts=True, controller=True, **changes):
        given = parameters(synthetic_snapshot('tiny'), follow_joint_trajectory=CONTROLLER, rate_hz=10.0, **changes)
        self.node, self.peer = self.start_node(given)
        self.chunks = self.peer.collect(ActionChunk, CHUNK, LATCHED)
        self.controller = self.add_controller(accepts) if controller else None
        self.robot = Robot(self.peer)

    def add_controller(self, accepts=True):
        """In a thread of its own, since following takes as long as it takes."""
        from harness import Peer

        peer = self.enterContext(Peer(self.peer.domain_id, 'controller'))
        controller = Controller(peer, accepts)
        executor = MultiThreadedExecutor(4, context=peer.context)
        executor.add_node(peer.node)
        thread = threading.Thread(target=executor.spin, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 5)
        self.addCleanup(executor.shutdown)
        # What is followed now and what still arrives ends first: a thread that followed on would keep Python from ending.
        self.addCleanup(controller.closed.set)
        return controller

    def wait_for_goals(self, count):
        self.peer.wait_for(lambda: len(self.controller.goals) >= count, PATIENCE, f'{count} goals of the controller')

    def test_every_chunk_becomes_a_goal_and_a_stop_cancels_the_last(self):
        self.start(instruction='')
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        goal = client.send_goal_async(PredictChunk.Goal(instruction='wave', chunks=1000))
        self.wait_for_goals(4)
        trajectory = self.controller.goals[-1]
        self.assertEqual(list(trajectory.joint_names), JOINTS)
        stamps = [chunk.header.stamp for chunk in self.chunks]
        self.peer.wait_for(lambda: goal.done(), PATIENCE, 'the goal')
        [chunk] = [chunk for chunk in self.chunks if chunk.header.stamp == self.controller.goals[2].header.stamp][:1]
        rows = np.concatenate([values(chunk)[group] for group in GROUPS], -1).astype(np.float64)
        points = self.controller.goals[2].points
        np.testing.assert_array_equal([point.positions for point in points], rows[-len(points) :])
        self.assertGreater(len(stamps), 2)
        self.assertEqual(self.controller.cancelled, [])

        cancel = goal.result().cancel_goal_async()
        self.peer.wait_for(cancel.done, PATIENCE, 'the cancellation')
        self.peer.wait_for(lambda: self.controller.cancelled, PATIENCE, 'the cancellation of the trajectory')
        count = len(self.controller.goals)
        self.peer.spin(0.5)
        self.assertEqual(len(self.controller.goals), count)

    def test_a_controller_that_rejects_is_reported(self):
        self.start(accepts=False)
        self.line(self.node, self.peer, f'the controller on {CONTROLLER} rejects trajectories')
        count = len(self.chunks)
        self.peer.wait_for(lambda: len(self.chunks) > count, PATIENCE, 'chunks all the same')

    def test_a_controller_that_comes_late_and_rejects_is_reported(self):
        self.start(controller=False)
        self.line(self.node, self.peer, f'no controller answers on {CONTROLLER}')
        self.controller = self.add_controller(accepts=False)
        self.line(self.node, self.peer, f'the controller on {CONTROLLER} rejects trajectories')

    def test_a_controller_that_comes_late(self):
        self.start(controller=False)
        self.line(self.node, self.peer, f'no controller answers on {CONTROLLER}')
        self.controller = self.add_controller()
        self.wait_for_goals(2)
        # Nothing old: what was ordered before it came is forgotten.
        age = self.peer.node.get_clock().now().nanoseconds / 1e9 - (
            self.controller.goals[0].header.stamp.sec + self.controller.goals[0].header.stamp.nanosec / 1e9
        )
        self.assertLess(age, 3.0)


if __name__ == '__main__':
    unittest.main()
