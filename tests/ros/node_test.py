"""The node with real ROS 2 peers in another process: what it publishes, what it waits for, what it survives."""

import json
import signal
import subprocess
import time
import unittest

import numpy as np
from gr00t_blackhole.msg import ActionChunk, ActionGroup
from gr00t_blackhole.srv import GetContract, SetInstruction
from harness import LATCHED, RELIABLE, NodeProcess, Peer, domain, node_binary
from node_case import PATIENCE, NodeCase
from rcl_interfaces.msg import Parameter, ParameterEvent, ParameterType, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rig import (
    CAMERA,
    CAMERA_TOPIC,
    CHUNK,
    GROUPS,
    INSTRUCTION,
    JOINT_TOPIC,
    JOINTS,
    NODE,
    TRAJECTORY,
    Robot,
    compressed_message,
    image_message,
    joint_state,
    nanoseconds,
    offline_chunk,
    parameters,
    picture,
    pose,
    synthetic_snapshot,
    time_message,
    values,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage
from trajectory_msgs.msg import JointTrajectory

# The node ends this soon after a signal [s].
STOP_LIMIT = 2.0


class NodeTest(NodeCase):
    snapshot = None

    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny')

    def start(self, arguments=(), **changes):
        return self.start_node(parameters(self.snapshot, **changes), arguments)

    def chunk_after(self, peer, chunks, stamp=None, what='a chunk', accept=lambda chunk: True):
        """The first chunk whose inputs all are later than `stamp` (default: now)."""
        stamp = peer.node.get_clock().now().nanoseconds if stamp is None else stamp

        def found():
            fresh = [c for c in chunks if all(nanoseconds(age.stamp) > stamp for age in c.ages) and accept(c)]
            return fresh[0] if fresh else None

        return peer.wait_for(found, PATIENCE, what)

    def assert_offline(self, robot, chunk, **how):
        """The chunk has the bytes that the offline command computes from what the robot showed."""
        rgb, positions = robot.seen(chunk)
        expected = offline_chunk(self.snapshot, rgb, positions, chunk.seed, **how)
        self.assert_same_bytes(chunk, expected)


class ChunkTest(NodeTest):
    def test_encodings_and_sizes_give_the_offline_chunk(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        seen = set()
        for i, (encoding, width, height, padding, big) in enumerate([
            ('rgb8', 256, 256, 0, False),
            ('bgr8', 640, 480, 12, False),
            ('rgba8', 256, 256, 4, True),
            ('bgra8', 640, 480, 0, False),
            ('rgb16', 256, 256, 0, True),
            ('bgr16', 320, 200, 2, False),
        ]):
            rgb = picture(width, height, i)
            robot.show(rgb, image_message(rgb, encoding, padding, big))
            robot.hold(pose(i))
            chunk = self.chunk_after(peer, chunks, what=f'a chunk from {encoding}')
            shown, _ = robot.seen(chunk)
            self.assertIs(shown, rgb, encoding)
            self.assert_offline(robot, chunk)
            seen.add(values(chunk)['left_arm'].tobytes())
        self.assertEqual(len(seen), 6, 'other observations give other chunks')

        self.assertEqual((chunk.version, chunk.embodiment, chunk.instruction), ('n16', 'gr1', INSTRUCTION))
        self.assertEqual((chunk.seed, chunk.noise_given, chunk.dt), (42, False, 0.05))
        self.assertTrue(chunk.backend.startswith('cpu'), chunk.backend)
        self.assertEqual(bytes(chunk.goal_id.uuid), bytes(16))
        stages = ['encode', 'vision', 'llm', 'adapter', 'denoise', 'decode']
        self.assertEqual([timing.stage for timing in chunk.timings], stages)
        self.assertTrue(all(timing.seconds >= 0 for timing in chunk.timings))
        self.assertEqual({age.input for age in chunk.ages}, {CAMERA, *GROUPS})
        self.assertEqual(nanoseconds(chunk.header.stamp), max(nanoseconds(age.stamp) for age in chunk.ages))
        self.assertTrue(all(0 <= age.age < PATIENCE for age in chunk.ages))
        self.assertGreaterEqual(nanoseconds(chunk.completed), nanoseconds(chunk.header.stamp))
        for group in chunk.groups:
            self.assertEqual(group.representation, ActionGroup.JOINT_POSITION)
            self.assertEqual(list(group.joint_names), GROUPS[group.name])
        # The node's queue of a latched topic holds one chunk, so some may be missed.
        numbers = [chunk.sequence for chunk in chunks]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_compressed_frames(self):
        camera = {CAMERA: {'topic': '/cam/compressed', 'transport': 'compressed'}}
        node, peer = self.start(camera=camera, seed=7)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer, camera_topic='/cam/compressed', camera_type=CompressedImage)
        chunk = self.chunk_after(peer, chunks)
        self.assertEqual(chunk.seed, 7)
        self.assert_offline(robot, chunk)

        # The label of case 39 that says otherwise changes nothing but the log.
        rgb = picture(320, 240, 9)
        robot.show(rgb, compressed_message(rgb, 'rgb8; png compressed rgb8'))
        self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.line(node, peer, 'red and blue were swapped before compression')

    def test_a_late_joiner_gets_the_latched_chunk(self):
        node, peer = self.start(camera_max_age_ms=500)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        robot.frame = robot.joints = None
        # Until the frame is stale and the last prediction over.
        peer.spin(2.0)
        with Peer(peer.domain_id, 'late') as late:
            latched = late.collect(ActionChunk, CHUNK, LATCHED)
            late.wait_for(lambda: latched, PATIENCE, 'the latched chunk')
            late.spin(0.5)
            self.assertEqual([chunk.sequence for chunk in latched], [chunks[-1].sequence])
            self.assertTrue(latched[0] == chunks[-1], 'another chunk than the one that was published')

    def test_case_23_a_chunk_depends_on_observation_and_seed_alone(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        Robot(peer)

        def with_seed(seed):
            self.assert_set(peer, 'seed', seed)
            return self.chunk_after(peer, chunks, accept=lambda c: c.seed == seed)

        first, other, again = with_seed(1), with_seed(2), with_seed(1)
        for group in GROUPS:
            self.assertEqual(values(first)[group].tobytes(), values(again)[group].tobytes())
            self.assertNotEqual(values(first)[group].tobytes(), values(other)[group].tobytes())

    def test_frames_arrive_while_a_chunk_is_computed(self):
        self.snapshot = synthetic_snapshot('mid')
        node, peer = self.start(rate_hz=100.0)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        Robot(peer)
        peer.wait_for(lambda: len(chunks) >= 3, 2 * PATIENCE, 'three chunks')
        for chunk in chunks[1:]:
            [age] = [age.age for age in chunk.ages if age.input == CAMERA]
            self.assertLess(age, 0.5 * sum(timing.seconds for timing in chunk.timings))

    def assert_set(self, peer, name, value):
        message = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=value)
        request = SetParameters.Request(parameters=[Parameter(name=name, value=message)])
        [result] = peer.call(SetParameters, f'{NODE}/set_parameters', request).results
        self.assertTrue(result.successful, result.reason)


class TrajectoryTest(NodeTest):
    def test_cases_27_and_28_the_trajectory_is_what_a_controller_takes(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        trajectories = peer.collect(JointTrajectory, TRAJECTORY)
        Robot(peer)
        # On a busy machine some chunk may be over before it is there, and have none.
        pairs = lambda: [(c, t) for c in chunks for t in trajectories if c.header.stamp == t.header.stamp]
        [(chunk, trajectory)] = peer.wait_for(pairs, PATIENCE, 'a chunk and its trajectory')
        self.assertEqual(list(trajectory.joint_names), JOINTS)
        columns = np.concatenate([values(chunk)[group] for group in GROUPS], -1).astype(np.float64)
        times = [nanoseconds(point.time_from_start) for point in trajectory.points]
        self.assertGreater(len(times), 0)
        self.assertEqual(times, [50_000_000 * (i + 1) for i in range(chunk.horizon)][-len(times) :])
        for point, row in zip(trajectory.points, columns[-len(times) :], strict=True):
            self.assertEqual(list(point.positions), row.tolist())
            self.assertEqual(len(point.velocities), 0)
        first_due = nanoseconds(trajectory.header.stamp) + times[0]
        self.assertGreater(first_due, nanoseconds(chunk.completed) - 50_000_000)

    def test_points_in_the_past_are_left_out(self):
        # A step of 1 ms: the whole chunk is over before it is computed.
        node, peer = self.start(action_rate_hz=1000.0)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        trajectories = peer.collect(JointTrajectory, TRAJECTORY)
        robot = Robot(peer)
        robot.now = lambda: peer.node.get_clock().now().nanoseconds - 100_000_000
        chunk = self.chunk_after(peer, chunks)
        self.assertEqual(chunk.dt, 0.001)
        self.line(node, peer, 'no trajectory')
        self.assertEqual(trajectories, [])

    def test_it_can_be_switched_off(self):
        node, peer = self.start(trajectory=False)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        trajectories = peer.collect(JointTrajectory, TRAJECTORY)
        Robot(peer)
        self.chunk_after(peer, chunks)
        self.chunk_after(peer, chunks)
        self.assertEqual(trajectories, [])


class RefusalTest(NodeTest):
    def assert_silent(self, peer, chunks, seconds=1.0):
        """No chunk comes for so long."""
        count = len(chunks)
        peer.spin(seconds)
        self.assertEqual(len(chunks), count, 'a chunk was published')

    def test_case_03_a_missing_joint(self):
        node, peer = self.start(state_max_age_ms=500)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        robot.hold(pose(1), leave_out=['left_wrist_roll_joint'])
        line = self.line(node, peer, 'left_wrist_roll_joint')
        self.assertIn('left_arm', line)
        self.assert_silent(peer, chunks)
        self.assertEqual(chunks, [])
        robot.hold(pose(1))
        self.assert_offline(robot, self.chunk_after(peer, chunks))

        # Missing later: predictions go on until the last whole sample is stale, and no longer.
        robot.hold(pose(2), leave_out=['waist_roll_joint'])
        self.line(node, peer, 'waist_roll_joint')
        peer.spin(1.5)
        self.assert_silent(peer, chunks)
        self.assertTrue(all(robot.seen(chunk)[1] is not robot.joints[0] for chunk in chunks))

    def test_case_04_prefixed_joints(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        robot.hold({f'robot1/{name}': value for name, value in pose(1).items()})
        line = self.line(node, peer, 'did you mean')
        self.assertIn("'robot1/left_shoulder_pitch_joint'", line)
        self.assert_silent(peer, chunks)
        self.assertEqual(chunks, [])

    def test_case_01_a_stopped_camera(self):
        node, peer = self.start(camera_max_age_ms=400)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        robot.frame = None
        line = self.line(node, peer, 'waiting for.*limit 0.400 s')
        self.assertIn(f"camera '{CAMERA}' (topic {CAMERA_TOPIC})", line)
        self.assertNotIn('waist', line)
        self.assert_silent(peer, chunks)
        for chunk in chunks:
            [age] = [age.age for age in chunk.ages if age.input == CAMERA]
            self.assertLessEqual(age, 0.4)
        robot.show(picture(256, 256, 3))
        self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_garbage_on_every_topic(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.chunk_after(peer, chunks)
        noise = np.random.default_rng(3)
        whole = {
            robot.camera: bytes_of(image_message(picture(64, 64, 1))),
            robot.joint_states: bytes_of(joint_state(pose(1))),
        }
        for publisher, message in whole.items():
            for length in [0, 1, 3, 4, 5, 40, 4000]:
                publisher.publish(b'\x00\x01\x00\x00' + noise.bytes(length))
                publisher.publish(noise.bytes(length))
            for cut in [5, 11, len(message) // 2, len(message) - 5]:
                publisher.publish(message[:cut])
            # Every length field as large as it can be.
            for place in range(4, min(len(message) - 4, 120), 4):
                publisher.publish(message[:place] + b'\xff\xff\xff\xff' + message[place + 4 :])
            peer.spin(0.2)
        self.line(node, peer, 'are not a sensor_msgs/msg/')
        self.assertTrue(node.running())
        self.assert_offline(robot, self.chunk_after(peer, chunks))
        self.assertLess(node.resident_bytes(), 1_000_000_000)

    def test_cases_50_and_59_frames_that_cannot_be_used(self):
        node, peer = self.start(camera_max_age_ms=500)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        rgb = picture(256, 256, 1)
        for change, expected in [
            ({'encoding': 'yuv422_yuy2'}, "encoding 'yuv422_yuy2' is not supported; accepted are rgb8, bgr8"),
            ({'encoding': '8UC3'}, r'`order` parameter \(rgb or bgr\)'),
            ({'data': bytes(3 * 256 * 255)}, 'data has 195840 bytes, but step 768 times height 256 is 196608'),
            ({'step': 700}, 'step is 700 bytes'),
            ({'width': 20, 'height': 20, 'step': 60, 'data': bytes(1200)}, 'each side must be 64 to 4096'),
        ]:
            message = image_message(rgb)
            for field, value in change.items():
                setattr(message, field, value)
            robot.show(rgb, message)
            line = self.line(node, peer, expected)
            self.assertIn(CAMERA_TOPIC, line)
        self.assert_silent(peer, chunks)
        robot.show(rgb)
        self.assert_offline(robot, self.chunk_after(peer, chunks))

    def test_case_54_stamps_of_no_use(self):
        node, peer = self.start()
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        for stamp in [0, 5_000_000_000]:
            robot.now = lambda stamp=stamp: stamp
            line = self.line(node, peer, 'set `timeline` to receive')
            self.assertRegex(line, f'{CAMERA_TOPIC}|{JOINT_TOPIC}')
        self.assert_silent(peer, chunks)
        self.assertEqual(chunks, [])

    def test_case_54_timeline_receive(self):
        node, peer = self.start(timeline='receive')
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        robot.now = lambda: 0
        before = peer.node.get_clock().now().nanoseconds
        chunk = self.chunk_after(peer, chunks, before)
        expected = offline_chunk(self.snapshot, robot.frame[0], robot.joints[0], chunk.seed)
        for name, rows in values(chunk).items():
            self.assertEqual(rows.tobytes(), expected[name].tobytes(), name)

    def test_case_76_everything_comes_late(self):
        node, peer = self.start(instruction='')
        line = self.line(node, peer, 'waiting for')
        for part in ['instruction', CAMERA, CAMERA_TOPIC, 'no frame yet', 'no sample yet', JOINT_TOPIC]:
            self.assertIn(part, line)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        self.assert_silent(peer, chunks)
        request = SetInstruction.Request(instruction='wave')
        self.assertTrue(peer.call(SetInstruction, f'{NODE}/set_instruction', request).success)
        chunk = self.chunk_after(peer, chunks)
        self.assertEqual(chunk.instruction, 'wave')
        self.assert_offline(robot, chunk, instruction='wave')


class ClockTest(NodeTest):
    def test_case_30_simulated_time(self):
        node, peer = self.start(use_sim_time=True)
        clock = peer.publisher(Clock, '/clock', RELIABLE)
        chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
        robot = Robot(peer)
        peer.spin(0.5)
        self.assertEqual(chunks, [])

        start, began = 5_000_000_000_000, time.monotonic_ns()
        robot.now = lambda: start + time.monotonic_ns() - began
        timer = peer.node.create_timer(0.02, lambda: clock.publish(Clock(clock=time_message(robot.now()))))
        chunk = self.chunk_after(peer, chunks, start)
        self.assert_offline(robot, chunk)
        self.assertLess(nanoseconds(chunk.completed), start + PATIENCE * 1_000_000_000)

        # The simulation is reset: what came before does not count, and predictions go on in the new time.
        robot.frame = None
        start = 100_000_000_000
        began = time.monotonic_ns()
        self.line(node, peer, 'clock jumped')
        peer.spin(0.5)
        count = len(chunks)
        peer.spin(0.5)
        self.assertEqual(len(chunks), count, 'a frame of the time before the jump was used')
        robot.show(picture(256, 256, 4))
        chunk = self.chunk_after(peer, chunks, 0, accept=lambda c: c.header.stamp.sec < 1000)
        self.assert_offline(robot, chunk)
        peer.node.destroy_timer(timer)


class EndTest(NodeTest):
    def assert_clean(self, node, number):
        report = node.stop(number)
        self.assertEqual(report.code, 0, node.log())
        self.assertLess(report.seconds, STOP_LIMIT)
        self.assertNotIn('panicked', node.log())

    def test_signals_while_it_waits(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            node, _ = self.start()
            node.wait_for_log('waiting for', PATIENCE)
            self.assert_clean(node, number)

    def test_signals_while_it_predicts(self):
        self.snapshot = synthetic_snapshot('mid')
        for number in [signal.SIGINT, signal.SIGTERM]:
            node, peer = self.start(rate_hz=50.0)
            chunks = peer.collect(ActionChunk, CHUNK, LATCHED)
            Robot(peer)
            self.chunk_after(peer, chunks)
            peer.spin(0.1)
            self.assert_clean(node, number)

    def test_a_signal_while_it_loads(self):
        self.snapshot = synthetic_snapshot('mid')
        for delay in [0.05, 0.1, 0.2, 0.4]:
            node, _ = self.start()
            time.sleep(delay)
            report = node.stop(signal.SIGINT)
            self.assertLess(report.seconds, STOP_LIMIT)
            # Before the program has begun, the signal's default is all there is.
            self.assertIn(report.code, [0, -signal.SIGINT] if delay < 0.2 else [0])


class ParameterTest(NodeTest):
    def refused(self, *arguments, **changes):
        """Exit status and log of a node that does not start."""
        number = self.enterContext(domain())
        given = parameters(self.snapshot, **changes)
        node = self.enterContext(NodeProcess(given, domain_id=number, arguments=arguments))
        code = node.process.wait(PATIENCE)
        node._reader.join(1)
        self.assertNotIn('panicked', node.log())
        return code, node.log()

    def test_what_is_wrong_is_said_at_start(self):
        camera = {'ego_veiw_bg_crop_pad_res256_freq20': {'topic': '/cam'}}
        for code, changes, expected in [
            (2, {'rate_Hz': 3.0}, "'rate_Hz' does not exist; did you mean 'rate_hz'?"),
            (2, {'camera': camera}, f"did you mean 'camera.{CAMERA}.topic'?"),
            (2, {'rate_hz': -1.0}, "'rate_hz' is 0.0 to 200.0, not -1.0"),
            (2, {'seed': 'seven'}, "'seed' is of type integer"),
            (2, {'timeline': 'now'}, "one of 'stamp', 'receive'"),
            (2, {'state': {'waist': {'joints': ['waist_yaw_joint']}}}, "'waist' of 'gr1' needs 3 joint names"),
            (2, {'snapshot': ''}, 'snapshot'),
            (1, {'embodiment': 'gr2'}, 'gr1'),
            (1, {'snapshot': '/nowhere/at/all'}, '/nowhere/at/all'),
            (1, {'version': 'n17'}, 'n17'),
        ]:
            with self.subTest(expected=expected):
                status, log = self.refused(**changes)
                self.assertEqual(status, code, log)
                self.assertIn(expected, log)

    def test_bad_ros_arguments_are_refused_with_a_sentence(self):
        for arguments in [['-p', 'seed'], ['-r', '::'], ['--params-file', '/nowhere.yaml'], ['--log-level', 'loud']]:
            with self.subTest(arguments=arguments):
                code, log = self.refused(*arguments)
                self.assertEqual(code, 2, log)
                self.assertIn('error:', log)
        for argv in [['stray'], ['--rosargs']]:
            done = subprocess.run([node_binary(), 'node', *argv], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_help_names_the_parameters(self):
        done = subprocess.run([node_binary(), 'node', '--help'], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0)
        for name in ['rate_hz', 'camera.<key>.topic', 'one of \'raw\', \'compressed\'']:
            self.assertIn(name, done.stdout)

    def test_parameter_services(self):
        node, peer = self.start(rate_hz=4)
        events = peer.collect(ParameterEvent, '/parameter_events')

        def call(kind, name, **request):
            return peer.call(kind, f'{NODE}/{name}', kind.Request(**request))

        names = call(ListParameters, 'list_parameters').result.names
        self.assertIn('rate_hz', names)
        self.assertIn(f'camera.{CAMERA}.topic', names)
        below = call(ListParameters, 'list_parameters', prefixes=['state.waist']).result.names
        self.assertLessEqual({'state.waist.joints', 'state.waist.source', 'state.waist.topic'}, set(below))
        self.assertTrue(all(name.startswith('state.waist.') for name in below), below)

        got = call(GetParameters, 'get_parameters', names=['rate_hz', 'state.waist.joints', 'nothing']).values
        self.assertEqual((got[0].type, got[0].double_value), (ParameterType.PARAMETER_DOUBLE, 4.0))
        self.assertEqual(list(got[1].string_array_value), GROUPS['waist'])
        self.assertEqual(got[2].type, ParameterType.PARAMETER_NOT_SET)
        types = call(GetParameterTypes, 'get_parameter_types', names=['rate_hz', 'nothing']).types
        self.assertEqual(list(types), [ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_NOT_SET])

        described = call(DescribeParameters, 'describe_parameters', names=['seed', 'rate_hz', 'timeline']).descriptors
        self.assertEqual([d.read_only for d in described], [False, True, True])
        self.assertTrue(all(d.description for d in described))
        self.assertEqual(described[0].integer_range[0].from_value, -1)
        self.assertEqual(described[1].floating_point_range[0].to_value, 200.0)
        self.assertIn("'receive'", described[2].additional_constraints)

        def value(text=None, number=None):
            if text is not None:
                return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
            return ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=number)

        changes = [
            Parameter(name='instruction', value=value('wave')),
            Parameter(name='seed', value=value(number=-2)),
            Parameter(name='snapshot', value=value('/elsewhere')),
            Parameter(name='no_such', value=value(number=1)),
        ]
        results = call(SetParameters, 'set_parameters', parameters=changes).results
        self.assertEqual([result.successful for result in results], [True, False, False, False])
        for result, reason in zip(results[1:], ['-1 or more', 'cannot be changed', 'does not exist'], strict=True):
            self.assertIn(reason, result.reason)
        changed = lambda: [p.name for e in events if e.node == NODE for p in e.changed_parameters]
        peer.wait_for(changed, PATIENCE, 'the parameter event')
        self.assertEqual(changed(), ['instruction'])

        both = [Parameter(name='instruction', value=value('stop')), Parameter(name='seed', value=value(number=-2))]
        result = call(SetParametersAtomically, 'set_parameters_atomically', parameters=both).result
        self.assertFalse(result.successful)
        [got] = call(GetParameters, 'get_parameters', names=['instruction']).values
        self.assertEqual(got.string_value, 'wave')

    def test_instruction_and_contract(self):
        node, peer = self.start()
        # Before that there is no policy to ask.
        node.wait_for_log('ready as', PATIENCE)
        set_instruction = lambda text: peer.call(
            SetInstruction, f'{NODE}/set_instruction', SetInstruction.Request(instruction=text)
        )
        refused = set_instruction('  ')
        self.assertEqual((refused.success, refused.instruction), (False, INSTRUCTION))
        self.assertTrue(refused.message)
        # Nothing is left of it once it has been formalised.
        refused = set_instruction('\U0001f350')
        self.assertEqual((refused.success, refused.instruction), (False, INSTRUCTION))
        self.assertIn('nothing is left', refused.message)
        accepted = set_instruction('wave')
        self.assertEqual((accepted.success, accepted.instruction), (True, 'wave'))

        answer = peer.call(GetContract, f'{NODE}/get_contract', GetContract.Request())
        self.assertTrue(answer.success, answer.message)
        contract = answer.contract
        slots = json.loads((self.snapshot / 'embodiment_id.json').read_text())
        self.assertEqual((contract.version, contract.embodiment), ('n16', 'gr1'))
        self.assertEqual(contract.slot, slots['gr1'])
        self.assertIn('gr1', contract.embodiments)
        self.assertEqual((contract.instruction, contract.seed), ('wave', 42))
        self.assertEqual([(c.key, c.topic) for c in contract.cameras], [(CAMERA, CAMERA_TOPIC)])
        self.assertEqual([s.name for s in contract.state], list(GROUPS))
        self.assertEqual([list(s.names) for s in contract.state], list(GROUPS.values()))
        self.assertEqual([a.relative_to for a in contract.action], [*list(GROUPS)[:4], ''])
        self.assertEqual(len(contract.action[0].min), contract.horizon * 7)
        self.assertIn('"embodiment":"gr1"', answer.json.replace(' ', ''))

        missing = peer.call(GetContract, f'{NODE}/get_contract', GetContract.Request(embodiment='gr2'))
        self.assertFalse(missing.success)
        self.assertIn('gr1', missing.message)

    def test_namespace_remapping_and_name(self):
        arguments = ['-r', '__ns:=/left', '-r', '__node:=policy', '-r', f'{CAMERA_TOPIC}:=/other/camera']
        node, peer = self.start(arguments)
        chunks = peer.collect(ActionChunk, '/left/policy/action_chunk', LATCHED)
        robot = Robot(peer, camera_topic='/other/camera', joint_topic='/left/joint_states')
        self.assert_offline(robot, self.chunk_after(peer, chunks))


def bytes_of(message):
    from rclpy.serialization import serialize_message

    return serialize_message(message)


if __name__ == '__main__':
    unittest.main()
