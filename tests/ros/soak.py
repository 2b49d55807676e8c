"""Hours of a robot's life in minutes, with faults: a simulated clock runs fast while cameras die, publishers restart, the
clock jumps, garbage arrives, goals are sent and cancelled, and the node is deactivated.

    scripts/soak.sh                        30 minutes of the robot's time
    scripts/soak.sh --minutes 20 --seed 7

Reports chunks, refusals by cause, how goals ended and how memory grew. Exit status 1 if the node died, if a prediction
was lost without a reason, if a goal got no result, or if memory grows.
"""

import argparse
import collections
import random
import re
import sys
import time

import numpy as np
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk
from harness import LATCHED, RELIABLE, SENSOR_DATA, NodeProcess, Peer, domain
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.serialization import serialize_message
from rig import CAMERA_TOPIC, CHUNK, JOINT_TOPIC, NODE, image_message, joint_state, parameters, picture, pose
from rig import synthetic_snapshot, time_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState

# Frames and samples per second of the robot's time.
RATE_HZ = 30
PREDICTIONS_HZ = 10.0
# A fault begins this often on average [s of the robot's time].
FAULT_PERIOD_S = 8.0
# Progress is shown this often [s].
PROGRESS_S = 10.0
# Memory may grow by so much between the end of the first third and the end of the run [MiB]: every new policy has new
# threads, each of which may take a part of the allocator's memory of its own, and a tiny policy takes five.
GROWTH_MIB = 16


def reason_names():
    """Number to name of every reason of the result."""
    constants = {name: getattr(PredictChunk.Result, name) for name in dir(PredictChunk.Result) if name.isupper()}
    return {value: name.lower() for name, value in constants.items() if isinstance(value, int)}


class Soak:
    def __init__(self, node, peer, minutes, speed, seed):
        self.node, self.peer, self.speed = node, peer, speed
        self.random = random.Random(seed)
        self.duration_s = 60.0 * minutes
        self.pictures = [picture(64, 64, number) for number in range(16)]
        self.positions = pose(seed % 1000)
        self.clock = peer.node.create_publisher(Clock, '/clock', RELIABLE)
        self.camera = peer.node.create_publisher(Image, CAMERA_TOPIC, SENSOR_DATA)
        self.joints = peer.node.create_publisher(JointState, JOINT_TOPIC, SENSOR_DATA)
        self.chunks = 0
        peer.node.create_subscription(ActionChunk, CHUNK, self.chunk, LATCHED)
        self.client = peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        self.lifecycle = peer.client(ChangeState, f'{NODE}/change_state')
        self.setter = peer.client(SetParameters, f'{NODE}/set_parameters')
        self.offset_s = 1_000_000.0
        self.elapsed_s = 0.0
        self.frame = 0
        # What is wrong at the moment, and until when [s since the start].
        self.faults = {}
        self.begun = collections.Counter()
        self.goals = collections.Counter()
        self.open_goals = []
        self.memory = []

    def chunk(self, _):
        self.chunks += 1

    def now_ns(self):
        return int((self.offset_s + self.elapsed_s) * 1e9)

    def run(self):
        start = shown = time.monotonic()
        step = 1.0 / (RATE_HZ * self.speed)
        next_fault_s, due = 5.0, start
        while (wall := time.monotonic() - start) * self.speed < self.duration_s:
            self.elapsed_s = wall * self.speed
            if self.elapsed_s > next_fault_s:
                self.begin_fault()
                next_fault_s = self.elapsed_s + self.random.expovariate(1.0 / FAULT_PERIOD_S)
            self.publish()
            due += step
            self.peer.executor.spin_once(timeout_sec=max(0.0, due - time.monotonic()))
            if not self.node.running():
                return
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                self.memory.append((wall, self.node.resident_bytes()))
                print(
                    f'{self.elapsed_s / 60:5.1f} of {self.duration_s / 60:.0f} min: {self.chunks} chunks, '
                    f'{sum(self.begun.values())} faults, {sum(self.goals.values())} goals ended, '
                    f'{self.memory[-1][1] / 2**20:.0f} MiB',
                    flush=True,
                )
        self.settle()

    def publish(self):
        self.faults = {name: until for name, until in self.faults.items() if until > self.elapsed_s}
        stamp = time_message(self.now_ns())
        self.clock.publish(Clock(clock=stamp))
        if 'camera_dies' not in self.faults:
            self.frame += 'camera_freezes' not in self.faults
            message = image_message(self.pictures[self.frame % len(self.pictures)])
            message.header.stamp = stamp
            if 'wrong_encoding' in self.faults:
                message.encoding = 'yuv422_yuy2'
            if 'stamps_of_zero' in self.faults:
                message.header.stamp = time_message(0)
            self.camera.publish(message)
        if 'joints_die' not in self.faults:
            positions = dict(self.positions)
            if 'not_a_number' in self.faults:
                positions[self.random.choice(list(positions))] = float('nan')
            if 'joint_jumps' in self.faults:
                positions[self.random.choice(list(positions))] += 3.0
            message = joint_state(positions)
            message.header.stamp = stamp
            self.joints.publish(message)

    def begin_fault(self):
        lasting = ['camera_dies', 'camera_freezes', 'wrong_encoding', 'stamps_of_zero', 'joints_die', 'not_a_number']
        lasting += ['joint_jumps']
        at_once = [self.jump, self.garbage, self.restart, self.goal, self.goal, self.goal, self.cancel, self.cycle]
        chosen = self.random.choice([*lasting, *at_once])
        if callable(chosen):
            self.begun[chosen.__name__] += 1
            chosen()
        else:
            self.begun[chosen] += 1
            self.faults[chosen] = self.elapsed_s + self.random.uniform(0.5, 5.0)

    def jump(self):
        """The simulation is set back, or far ahead."""
        self.offset_s += self.random.choice([-500.0, -20.0, 100.0])

    def garbage(self):
        whole = serialize_message(image_message(self.pictures[0])), serialize_message(joint_state(self.positions))
        for publisher, message in zip([self.camera, self.joints], whole, strict=True):
            publisher.publish(message[: self.random.randrange(len(message))])
            publisher.publish(b'\x00\x01\x00\x00' + self.random.randbytes(self.random.randrange(200)))

    def restart(self):
        """The driver of the joints restarts."""
        self.peer.node.destroy_publisher(self.joints)
        self.joints = self.peer.node.create_publisher(JointState, JOINT_TOPIC, SENSOR_DATA)

    def goal(self):
        goal = PredictChunk.Goal(instruction=self.random.choice(['wave', 'stop', 'pick the pear']))
        match self.random.randrange(3):
            case 0:
                goal.chunks = self.random.randrange(1, 40)
            case 1:
                goal.duration = Duration(sec=self.random.randrange(1, 5))
            case 2:
                goal.chunks, goal.deadline = 1000, Duration(sec=self.random.randrange(1, 5))
        future = self.client.send_goal_async(goal)
        future.add_done_callback(self.answered)

    def answered(self, future):
        handle = future.result()
        if not handle.accepted:
            self.goals['rejected'] += 1
            return
        self.open_goals.append(handle)
        handle.get_result_async().add_done_callback(lambda done: self.ended(handle, done.result()))

    def ended(self, handle, answer):
        self.open_goals.remove(handle)
        name = reason_names()[answer.result.reason]
        right = (answer.status == GoalStatus.STATUS_SUCCEEDED) == (name == 'succeeded')
        self.goals[name if right else f'{name} with status {answer.status}'] += 1
        # The timer goes on when an instruction is set.
        self.instruct()

    def instruct(self):
        text = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=self.random.choice(['wave', 'rest']))
        self.setter.call_async(SetParameters.Request(parameters=[Parameter(name='instruction', value=text)]))

    def cancel(self):
        for handle in self.open_goals:
            handle.cancel_goal_async()

    def cycle(self):
        """Deactivated and activated again, perhaps with the policy unloaded in between."""
        steps = [Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE]
        if self.random.random() < 0.3:
            steps[1:1] = [Transition.TRANSITION_CLEANUP, Transition.TRANSITION_CONFIGURE]
        for step in steps:
            self.lifecycle.call_async(ChangeState.Request(transition=Transition(id=step)))

    def settle(self):
        """What is still running comes to its end."""
        self.faults.clear()
        deadline = time.monotonic() + 30
        while self.open_goals and time.monotonic() < deadline:
            self.publish()
            self.peer.executor.spin_once(timeout_sec=0.01)
            self.elapsed_s += 0.01 * self.speed

    def report(self):
        """Prints what happened; returns what is wrong."""
        running = self.node.running()
        ended = self.node.stop() if running else None
        log = self.node.log()
        counted = collections.Counter()
        for line in re.findall(r'the policy is unloaded; (.*)', log):
            for name, number in re.findall(r'([a-z][a-z _]*?) (\d+)', line):
                counted[name.strip()] += int(number)
        print('\nfaults:     ' + ', '.join(f'{name} {count}' for name, count in sorted(self.begun.items())))
        print('goals:      ' + ', '.join(f'{name} {count}' for name, count in sorted(self.goals.items())))
        print('the node:   ' + ', '.join(f'{name} {count}' for name, count in counted.items() if count))
        print(f'received:   {self.chunks} chunks')
        wrong = []
        if not running:
            return [f'the node died with {self.node.process.returncode}:\n' + log[-3000:]]
        if ended.code != 0:
            wrong.append(f'the node ended with {ended.code}')
        known = counted['chunks'] + counted['predictions failed'] + counted['predictions dropped']
        if counted['predictions'] != known or not counted['predictions']:
            wrong.append(f"{counted['predictions']} predictions were begun, {known} have a known end")
        if self.open_goals:
            wrong.append(f'{len(self.open_goals)} goals have got no result')
        strange = [name for name in self.goals if 'status' in name or name in ('unset', 'backend_fault')]
        if strange:
            wrong.append(f'goals ended strangely: {strange}')
        if 'panicked' in log:
            wrong.append('something panicked')
        return wrong + self.growth()

    def growth(self):
        if len(self.memory) < 6:
            print('memory:     too short a run to tell')
            return []
        times, sizes = np.array(self.memory, float).T
        first = len(sizes) // 3
        slope, _ = np.polyfit(times[first:], sizes[first:] / 2**20, 1)
        before, after = np.median(sizes[first : first + 3]), np.median(sizes[-3:])
        grown = (after - before) / 2**20
        print(f'memory:     {sizes[first] / 2**20:.0f} to {sizes[-1] / 2**20:.0f} MiB, {60 * slope:+.2f} MiB per minute')
        return [f'memory grew by {grown:.1f} MiB'] if grown > GROWTH_MIB else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--minutes', type=float, default=30.0, help="length of the run in the robot's time (default 30)")
    parser.add_argument('--speed', type=float, default=10.0, help='how much faster than life the clock runs (default 10)')
    parser.add_argument('--seed', type=int, default=1, help='of the random faults (default 1)')
    arguments = parser.parse_args()
    given = parameters(
        synthetic_snapshot('tiny'),
        use_sim_time=True,
        rate_hz=PREDICTIONS_HZ,
        preemption='replace',
        goal_start_timeout_ms=2000,
        camera_max_age_ms=500,
        state_max_age_ms=500,
        frozen_camera_frames=30,
        state_jump_max_rad_s=30.0,
    )
    with domain() as number, NodeProcess(given, domain_id=number) as node, Peer(number) as peer:
        node.wait_for_log('ready as', 60)
        soak = Soak(node, peer, arguments.minutes, arguments.speed, arguments.seed)
        soak.run()
        wrong = soak.report()
    for sentence in wrong:
        print(f'WRONG: {sentence}')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
