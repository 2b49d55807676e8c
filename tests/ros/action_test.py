"""The action server `~/predict_chunk` with rclpy's own action client."""

import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Duration
from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, RELIABLE
from node_case import PATIENCE, NodeCase
from rig import (
    CAMERA,
    CHUNK,
    GROUPS,
    INSTRUCTION,
    JOINTS,
    NODE,
    TRAJECTORY,
    Robot,
    nanoseconds,
    offline_chunk,
    parameters,
    picture,
    pose,
    synthetic_snapshot,
    values,
)
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import JointTrajectory
from unique_identifier_msgs.msg import UUID

ACTION = f'{NODE}/predict_chunk'
CANCEL = f'{ACTION}/_action/cancel_goal'
Result = PredictChunk.Result


def seconds(duration):
    return duration.sec + duration.nanosec / 1e9


class ActionCase(NodeCase):
    """A node without a timer: nothing is predicted but for goals."""

    size = 'tiny'

    def start(self, arguments=(), **changes):
        self.snapshot = synthetic_snapshot(self.size)
        given = parameters(self.snapshot, **({'rate_hz': 0.0} | changes))
        self.node, self.peer = self.start_node(given, arguments)
        self.chunks = self.peer.collect(ActionChunk, CHUNK, LATCHED)
        self.trajectories = self.peer.collect(JointTrajectory, TRAJECTORY)
        self.statuses = self.peer.collect(GoalStatusArray, f'{ACTION}/_action/status', LATCHED)
        self.robot = Robot(self.peer)
        self.client = self.peer.action_client(PredictChunk, ACTION)
        # What is cancelled is cancelled at once.
        self.peer.client(CancelGoal, CANCEL)
        self.feedback = []
        return self.node, self.peer

    def send(self, goal_id=None, **goal):
        """A goal handle: accepted or not."""
        keep = lambda message: self.feedback.append(message.feedback)
        future = self.client.send_goal_async(PredictChunk.Goal(**goal), keep, goal_uuid=goal_id)
        self.peer.wait_for(future.done, PATIENCE, 'the answer to the goal')
        return future.result()

    def result(self, handle, patience=PATIENCE):
        """Status and result of a goal."""
        future = handle.get_result_async()
        self.peer.wait_for(future.done, patience, 'the result')
        return future.result().status, future.result().result

    def run_goal(self, **goal):
        handle = self.send(**goal)
        self.assertTrue(handle.accepted)
        return self.result(handle)

    def cancel(self, goal_id=bytes(16)):
        """The answer of the cancel service; without an id, every goal is meant."""
        info = GoalInfo(goal_id=UUID(uuid=np.frombuffer(bytes(goal_id), np.uint8)))
        return self.peer.call(CancelGoal, CANCEL, CancelGoal.Request(goal_info=info))

    def wait_for_chunks(self, count):
        self.peer.wait_for(lambda: len(self.chunks) >= count, PATIENCE, f'{count} chunks')

    def assert_silent(self, seconds=0.7):
        """No chunk and no trajectory comes for so long, but for what is on its way."""
        self.peer.spin(0.2)
        count = len(self.chunks), len(self.trajectories)
        self.peer.spin(seconds)
        self.assertEqual((len(self.chunks), len(self.trajectories)), count)

    def stop(self):
        """The trajectory that ends a motion. It was sent before the result, but comes by another road, perhaps later."""
        is_stop = lambda: self.trajectories and len(self.trajectories[-1].points) <= 1
        self.peer.wait_for(is_stop, PATIENCE, 'the stop')
        return self.trajectories[-1]

    def assert_holds(self, trajectory):
        """One point, where the joints are."""
        self.assertEqual(list(trajectory.joint_names), JOINTS)
        [point] = trajectory.points
        positions, _ = self.robot.joints
        np.testing.assert_allclose(point.positions, [positions[joint] for joint in JOINTS], atol=1e-12)
        self.assertGreater(nanoseconds(point.time_from_start), 0)


class GoalTest(ActionCase):
    def test_a_goal_without_bounds_makes_one_chunk(self):
        self.start()
        self.assert_silent()
        status, result = self.run_goal(instruction='wave', seed_given=True, seed=7)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_SUCCEEDED, Result.SUCCEEDED), result.message)
        self.assertEqual((result.chunks, result.input), (1, ''))
        chunk = result.last_chunk
        self.assertEqual((chunk.instruction, chunk.seed), ('wave', 7))
        self.assertNotEqual(bytes(chunk.goal_id.uuid), bytes(16))
        rgb, positions = self.robot.seen(chunk)
        self.assert_same_bytes(chunk, offline_chunk(self.snapshot, rgb, positions, 7, 'wave'))
        stages = ['encode', 'vision', 'llm', 'adapter', 'denoise', 'decode']
        self.assertEqual([timing.stage for timing in result.timings], stages)
        self.assertGreater(seconds(result.elapsed), 0)
        self.wait_for_chunks(1)
        self.assertEqual(self.chunks[0], chunk)
        told = [feedback.stage for feedback in self.feedback if feedback.stage != 'waiting']
        self.assertEqual(told, stages)
        ages = {age.input for age in self.feedback[-1].ages}
        self.assertEqual(ages, {CAMERA, *GROUPS})
        self.assert_silent()

    def test_chunks_and_duration(self):
        self.start(rate_hz=20.0, instruction='')
        status, result = self.run_goal(instruction='wave', chunks=5)
        self.assertEqual((status, result.chunks), (GoalStatus.STATUS_SUCCEEDED, 5))
        self.wait_for_chunks(5)
        self.assertEqual([chunk.sequence for chunk in self.chunks], list(range(5)))
        self.assertEqual({bytes(chunk.goal_id.uuid) for chunk in self.chunks}, {bytes(result.last_chunk.goal_id.uuid)})
        stamps = [nanoseconds(chunk.header.stamp) for chunk in self.chunks]
        self.assertEqual(stamps, sorted(stamps))
        self.assertLessEqual({feedback.chunk_index for feedback in self.feedback}, set(range(5)))

        status, result = self.run_goal(instruction='wave', duration=Duration(sec=1))
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_SUCCEEDED, Result.SUCCEEDED))
        self.assertGreater(result.chunks, 3)
        self.assertGreaterEqual(seconds(result.elapsed), 1.0)

    def test_noise_of_ones_own(self):
        self.start()
        noise = np.random.default_rng(2).normal(size=50 * 128).astype(np.float32)
        _, first = self.run_goal(noise=noise)
        _, again = self.run_goal(noise=noise)
        self.assertEqual((first.last_chunk.noise_given, first.last_chunk.seed), (True, 0))
        for group in GROUPS:
            self.assertEqual(values(first.last_chunk)[group].tobytes(), values(again.last_chunk)[group].tobytes())
        _, other = self.run_goal(noise=-noise)
        self.assertNotEqual(values(first.last_chunk)['waist'].tobytes(), values(other.last_chunk)['waist'].tobytes())

    def test_goals_that_cannot_be_done_are_rejected_with_a_reason(self):
        node, _ = self.start(instruction='', goal_max_duration_s=60.0)
        for goal, reason in [
            ({}, 'no instruction'),
            ({'instruction': '\U0001f350'}, 'nothing is left'),
            ({'instruction': 'wave', 'noise': [0.0] * 5}, '5 values'),
            ({'instruction': 'wave', 'noise': [float('nan')] * 6400}, 'not a finite number'),
            ({'instruction': 'wave', 'duration': Duration(sec=-1)}, 'duration is -1 s'),
            ({'instruction': 'wave', 'duration': Duration(sec=61)}, 'goal_max_duration_s'),
            ({'instruction': 'wave', 'deadline': Duration(sec=1), 'duration': Duration(sec=2)}, 'deadline of 1 s'),
        ]:
            self.assertFalse(self.send(**goal).accepted, reason)
            self.line(node, self.peer, f'a goal was rejected: .*{reason}')
        handle = self.send(instruction='wave')
        self.assertTrue(handle.accepted)
        self.result(handle)
        # The id of a goal is taken, while it runs and while its result can be asked for.
        self.assertFalse(self.send(handle.goal_id, instruction='wave').accepted)
        self.assertFalse(self.send(UUID(), instruction='wave').accepted)

    def test_results_can_be_asked_for_late_and_of_unknown_goals(self):
        self.start()
        handle = self.send(instruction='wave')
        self.wait_for_chunks(1)
        self.peer.spin(0.5)
        status, result = self.result(handle)
        self.assertEqual((status, result.chunks), (GoalStatus.STATUS_SUCCEEDED, 1))
        request = PredictChunk.Impl.GetResultService.Request(goal_id=UUID(uuid=np.full(16, 9, np.uint8)))
        answer = self.peer.call(PredictChunk.Impl.GetResultService, f'{ACTION}/_action/get_result', request)
        self.assertEqual((answer.status, answer.result.chunks), (GoalStatus.STATUS_UNKNOWN, 0))

    def test_case_07_timer_and_goal_publish_the_same_bytes(self):
        self.start(rate_hz=5.0)
        self.wait_for_chunks(1)
        by_timer = self.chunks[-1]
        self.assertEqual(bytes(by_timer.goal_id.uuid), bytes(16))
        _, result = self.run_goal()
        # The robot stands still and the picture does too.
        self.assertEqual(by_timer.instruction, result.last_chunk.instruction)
        self.assertEqual([g.name for g in by_timer.groups], [g.name for g in result.last_chunk.groups])
        for group in GROUPS:
            self.assertEqual(values(by_timer)[group].tobytes(), values(result.last_chunk)[group].tobytes())

        # After a goal the robot rests until it is told what to do.
        self.peer.spin(0.3)
        self.assert_silent()
        from gr00t_blackhole.srv import SetInstruction

        self.peer.call(SetInstruction, f'{NODE}/set_instruction', SetInstruction.Request(instruction='go on'))
        count = len(self.chunks)
        self.wait_for_chunks(count + 2)
        self.assertEqual(self.chunks[-1].instruction, 'go on')


class EndingTest(ActionCase):
    def test_case_33_cancel_stops_the_arm_before_the_result(self):
        self.start(rate_hz=10.0)
        handle = self.send(chunks=1000)
        self.wait_for_chunks(3)
        answer = self.cancel(handle.goal_id.uuid)
        cancelled = time.monotonic()
        self.assertEqual(answer.return_code, CancelGoal.Response.ERROR_NONE)
        self.assertEqual([bytes(goal.goal_id.uuid) for goal in answer.goals_canceling], [bytes(handle.goal_id.uuid)])
        status, result = self.result(handle)
        self.assertLess(time.monotonic() - cancelled, 1.0)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_CANCELED, Result.CANCELLED))
        self.peer.spin(0.2)
        self.assert_holds(self.stop())
        self.assert_silent()
        self.assertEqual(self.statuses[-1].status_list[-1].status, GoalStatus.STATUS_CANCELED)

    def test_cancel_in_the_middle_of_a_prediction(self):
        self.size = 'mid'
        self.start(stop='empty')
        handle = self.send(chunks=100)
        self.peer.wait_for(lambda: any(f.stage == 'vision' for f in self.feedback), PATIENCE, 'the stage vision')
        self.cancel(handle.goal_id.uuid)
        status, result = self.result(handle)
        self.assertEqual(status, GoalStatus.STATUS_CANCELED)
        self.peer.spin(0.2)
        # The last prediction that was begun has made no chunk.
        self.assertEqual(self.feedback[-1].chunk_index, result.chunks)
        self.assertEqual([chunk.sequence for chunk in self.chunks], list(range(result.chunks)))
        self.assertEqual(len(self.stop().points), 0)
        self.assertEqual(list(self.trajectories[-1].joint_names), JOINTS)
        self.assert_silent()

    def test_cancel_all_unknown_and_ended(self):
        self.start(stop='none')
        self.assertEqual(self.cancel().return_code, CancelGoal.Response.ERROR_NONE)
        unknown = self.cancel(bytes([7] * 16))
        self.assertEqual(unknown.return_code, CancelGoal.Response.ERROR_UNKNOWN_GOAL_ID)
        handle = self.send(chunks=100_000)
        self.wait_for_chunks(1)
        self.assertEqual(len(self.cancel().goals_canceling), 1)
        self.assertEqual(self.result(handle)[0], GoalStatus.STATUS_CANCELED)
        self.assertTrue(all(len(trajectory.points) > 1 for trajectory in self.trajectories))
        ended = self.cancel(handle.goal_id.uuid)
        self.assertEqual(ended.return_code, CancelGoal.Response.ERROR_GOAL_TERMINATED)

    def test_case_01_a_stopped_camera_ends_the_goal(self):
        self.start(rate_hz=10.0, camera_max_age_ms=400)
        handle = self.send(duration=Duration(sec=100))
        self.wait_for_chunks(2)
        self.robot.frame = None
        status, result = self.result(handle)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.STALE_INPUT), result.message)
        self.assertEqual(result.input, CAMERA)
        self.assertIn(f"camera '{CAMERA}'", result.message)
        self.peer.spin(0.2)
        self.assert_holds(self.stop())
        self.assert_silent()

    def test_inputs_that_never_come(self):
        self.start(goal_start_timeout_ms=800)
        self.robot.joints = None
        self.peer.spin(3.2)
        status, result = self.run_goal()
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.STALE_INPUT), result.message)
        self.assertEqual(result.input, '/joint_states')
        self.assertIn('/joint_states', result.message)
        self.assertGreaterEqual(seconds(result.elapsed), 0.8)
        [waiting, *_] = [feedback for feedback in self.feedback if feedback.stage == 'waiting']
        self.assertIn('/joint_states', waiting.waiting_for)
        self.assertIn(CAMERA, {age.input for age in waiting.ages})
        # Where the joints are is not known.
        self.assertEqual(len(self.stop().points), 0)

    def test_case_92_deadline_and_maximum(self):
        self.start(rate_hz=10.0, goal_max_duration_s=1.0)
        status, result = self.run_goal(chunks=1000, deadline=Duration(nanosec=500_000_000))
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.DEADLINE), result.message)
        status, result = self.run_goal(chunks=1000)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.MAX_DURATION), result.message)
        self.assertIn('goal_max_duration_s', result.message)

    def test_case_34_a_second_goal_is_rejected(self):
        self.start(rate_hz=10.0)
        first = self.send(chunks=8)
        self.assertFalse(self.send(instruction='wave').accepted)
        status, result = self.result(first)
        self.assertEqual((status, result.chunks), (GoalStatus.STATUS_SUCCEEDED, 8))

    def test_case_34_a_second_goal_replaces_the_first(self):
        self.size = 'mid'
        self.start(preemption='replace')
        first = self.send(chunks=1000)
        self.peer.wait_for(lambda: any(f.stage == 'llm' for f in self.feedback), PATIENCE, 'a prediction')
        second = self.send(instruction='wave', chunks=1000)
        third = self.send(instruction='stop', chunks=2)
        for handle in [first, second]:
            status, result = self.result(handle)
            self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.REPLACED))
        status, result = self.result(third)
        self.assertEqual((status, result.chunks), (GoalStatus.STATUS_SUCCEEDED, 2))
        self.peer.wait_for(lambda: result.last_chunk in self.chunks, PATIENCE, 'the last chunk')
        owners = [bytes(chunk.goal_id.uuid) for chunk in self.chunks]
        self.assertEqual(owners[-2:], [bytes(third.goal_id.uuid)] * 2)
        last_of_first = max((i for i, owner in enumerate(owners) if owner == bytes(first.goal_id.uuid)), default=-1)
        self.assertLess(last_of_first, owners.index(bytes(third.goal_id.uuid)))

    def test_case_33_a_replacement_that_never_begins_stops_the_arm(self):
        self.size = 'mid'
        self.start(preemption='replace')
        first = self.send(chunks=1000)
        self.wait_for_chunks(1)
        self.peer.wait_for(lambda: self.feedback[-1].stage == 'vision', PATIENCE, 'a prediction')
        second = self.send(instruction='wave', chunks=1000)
        self.cancel(second.goal_id.uuid)
        self.assertEqual(self.result(first)[1].reason, Result.REPLACED)
        self.assertEqual(self.result(second)[1].reason, Result.CANCELLED)
        self.peer.spin(0.2)
        self.assert_holds(self.stop())
        self.assert_silent()

    def test_a_blind_goal_does_not_succeed(self):
        self.start(camera_max_age_ms=300)
        self.robot.frame = None
        self.peer.spin(0.5)
        status, result = self.run_goal(duration=Duration(sec=1))
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.STALE_INPUT), result.message)
        self.assertEqual(result.input, CAMERA)

    def test_a_goal_from_before_the_clock_has_all_its_time(self):
        self.start(use_sim_time=True, goal_start_timeout_ms=1000)
        now = [5_000_000_000_000]
        self.robot.now = lambda: now[0]
        handle = self.send(chunks=2)
        self.peer.spin(0.5)
        clock = self.peer.publisher(Clock, '/clock', RELIABLE)

        def tick():
            now[0] += 20_000_000
            clock.publish(Clock(clock=type(Clock().clock)(sec=now[0] // 10**9, nanosec=now[0] % 10**9)))

        self.peer.node.create_timer(0.02, tick)
        status, result = self.result(handle)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_SUCCEEDED, Result.SUCCEEDED), result.message)

    def test_nothing_new_from_a_world_that_stands_still(self):
        self.start(use_sim_time=True)
        clock = self.peer.publisher(Clock, '/clock', RELIABLE)
        now = [5_000_000_000_000]
        self.robot.now = lambda: now[0]

        def tick():
            clock.publish(Clock(clock=type(Clock().clock)(sec=now[0] // 10**9, nanosec=now[0] % 10**9)))

        def step():
            now[0] += 20_000_000

        self.peer.node.create_timer(0.02, tick)
        steps = self.peer.node.create_timer(0.02, step)
        handle = self.send(chunks=100_000)
        self.wait_for_chunks(3)
        self.peer.node.destroy_timer(steps)
        self.robot.timer.cancel()
        self.peer.spin(0.3)
        self.assert_silent()
        self.cancel(handle.goal_id.uuid)
        self.assertEqual(self.result(handle)[1].reason, Result.CANCELLED)

    def test_case_66_the_client_is_killed(self):
        self.start(rate_hz=10.0, goal_max_duration_s=4.0)
        script = f"""
import rclpy
from rclpy.action import ActionClient
from gr00t_blackhole.action import PredictChunk
rclpy.init()
node = rclpy.create_node('doomed')
client = ActionClient(node, PredictChunk, '{ACTION}')
client.wait_for_server()
future = client.send_goal_async(PredictChunk.Goal(chunks=100000))
rclpy.spin_until_future_complete(node, future)
print('accepted', future.result().accepted, flush=True)
rclpy.spin(node)
"""
        environment = {**os.environ, 'ROS_DOMAIN_ID': str(self.node.domain_id)}
        doomed = subprocess.Popen([sys.executable, '-c', script], env=environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(doomed.stdout.close)
        os.set_blocking(doomed.stdout.fileno(), False)
        self.peer.wait_for(lambda: 'accepted True' in (doomed.stdout.readline() or ''), PATIENCE, 'its goal')
        self.wait_for_chunks(2)
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        self.line(self.node, self.peer, 'goal ended after .*goal_max_duration_s')
        self.peer.spin(0.2)
        self.assert_holds(self.stop())
        self.assertEqual(self.run_goal()[0], GoalStatus.STATUS_SUCCEEDED)

    def test_case_30_a_clock_that_jumps_back_ends_the_goal(self):
        self.start(use_sim_time=True, rate_hz=10.0, trajectory=False)
        clock = self.peer.publisher(Clock, '/clock', RELIABLE)
        start, began = 5_000_000_000_000, time.monotonic_ns()
        self.robot.now = lambda: start + time.monotonic_ns() - began

        def tick():
            now = self.robot.now()
            clock.publish(Clock(clock=type(Clock().clock)(sec=now // 10**9, nanosec=now % 10**9)))

        self.peer.node.create_timer(0.02, tick)
        handle = self.send(chunks=1000)
        self.wait_for_chunks(2)
        start, began = 100_000_000_000, time.monotonic_ns()
        status, result = self.result(handle)
        self.assertEqual((status, result.reason), (GoalStatus.STATUS_ABORTED, Result.CLOCK_RESET), result.message)
        status, result = self.run_goal()
        self.assertEqual(status, GoalStatus.STATUS_SUCCEEDED, result.message)
        self.assertLess(result.last_chunk.header.stamp.sec, 1000)

    def test_shutdown_ends_the_goal_first(self):
        self.start(rate_hz=10.0)
        handle = self.send(chunks=1000)
        self.wait_for_chunks(1)
        future = handle.get_result_async()
        self.peer.spin(0.3)
        self.node.process.send_signal(signal.SIGINT)
        self.peer.wait_for(future.done, PATIENCE, 'the result')
        self.assertEqual(future.result().result.reason, Result.SHUTDOWN)
        self.assertEqual(self.node.process.wait(PATIENCE), 0, self.node.log())
        self.peer.spin(0.2)
        self.assert_holds(self.stop())

    def test_case_36_frames_of_the_goal_before_are_not_seen(self):
        # The policy of this robot sees one frame; what is checked is that a goal dates its own from its start on.
        self.start(rate_hz=10.0)
        _, first = self.run_goal(chunks=2)
        self.robot.show(picture(256, 256, 5))
        self.robot.hold(pose(5))
        self.peer.spin(0.3)
        _, second = self.run_goal(chunks=1)
        rgb, positions = self.robot.seen(second.last_chunk)
        self.assert_same_bytes(second.last_chunk, offline_chunk(self.snapshot, rgb, positions, 42, INSTRUCTION))
        self.assertNotEqual(values(first.last_chunk)['waist'].tobytes(), values(second.last_chunk)['waist'].tobytes())


if __name__ == '__main__':
    unittest.main()
