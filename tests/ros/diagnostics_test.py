"""What the node tells of itself: `/diagnostics`, `~/timing` and `~/debug/image`, with rclpy peers."""

import time
import unittest

import droid
import numpy as np
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from droid import CAMERA_HZ, EXTERIOR, WRIST, Droid
from gr00t_blackhole.action import PredictChunk
from gr00t_blackhole.msg import ActionChunk, Timing
from harness import LATCHED, SENSOR_DATA, NodeProcess
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_case import PATIENCE, NodeCase
from rig import (
    CAMERA,
    CAMERA_TOPIC,
    CHUNK,
    GROUPS,
    JOINT_TOPIC,
    NODE,
    Robot,
    image_message,
    nanoseconds,
    parameters,
    picture,
    synthetic_snapshot,
    values,
)
from sensor_msgs.msg import Image
from std_msgs.msg import Float64MultiArray

OK, WARN, ERROR, STALE = (DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE)
CAMERA_STATUS, JOINT_STATUS = f'policy: camera {CAMERA}', f'policy: state {JOINT_TOPIC}'
ENGINE, BACKEND, NAME = 'policy: engine', 'policy: backend', 'policy: node name'
SEAM = [('jump', 'rad'), ('acceleration', 'rad/s^2')]
STAGES = ['encode', 'vision', 'llm', 'adapter', 'denoise', 'decode']


def level_of(status):
    """Levels are bytes in Python."""
    return status.level[0] if isinstance(status.level, bytes) else status.level


def levels(*names):
    return [name[0] if isinstance(name, bytes) else name for name in names]


def seam(old, new, group, now_ns):
    """Largest jump and acceleration of the joints of a group where `new` takes over from `old`."""
    dt = new.dt
    (was, is_new), starts = [values(chunk)[group].astype(float) for chunk in (old, new)], []
    for chunk in (old, new):
        starts.append((nanoseconds(chunk.header.stamp) - nanoseconds(new.header.stamp)) / 1e9)
    times = [start + dt * np.arange(1, new.horizon + 1) for start in starts]
    at = lambda rows, due, t: np.array([np.interp(t, due, column) for column in rows.T])
    t = max((now_ns - nanoseconds(new.header.stamp)) / 1e9, dt)
    jump = np.abs(at(is_new, times[1], t) - at(was, times[0], t)).max()
    first = int(np.ceil(t / dt - 1e-9)) - 1
    border = times[1][first]
    before = [at(was, times[0], border - n * dt) for n in (2, 1) if border - n * dt >= times[0][0]]
    stream = np.array([*before, *is_new[first : first + 2]])
    return jump, np.abs(np.diff(stream, 2, axis=0)).max() / dt**2


class DiagnosticsCase(NodeCase):
    snapshot = None

    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny')

    def start(self, **changes):
        self.node, self.peer = self.start_node(parameters(self.snapshot, **changes))
        self.listen()

    def listen(self):
        self.arrays = self.peer.collect(DiagnosticArray, '/diagnostics')
        self.chunks = self.peer.collect(ActionChunk, CHUNK, LATCHED)

    def wait_for_status(self, name, condition, what, patience=PATIENCE):
        """Level, message and values of the first status of this name to come that fulfils the condition."""
        self.arrays.clear()
        seen = []

        def found():
            for array in self.arrays:
                for status in array.status:
                    if status.name == name:
                        seen.append((level_of(status), status.message))
                        values = {value.key: value.value for value in status.values}
                        if condition(level_of(status), status.message, values):
                            return level_of(status), status.message, values
            self.arrays.clear()
            return None

        try:
            return self.peer.wait_for(found, patience, f'{name}: {what}')
        except AssertionError as error:
            raise AssertionError(f'{error}; it said {seen[-3:]}') from None

    def wait_for_level(self, name, level, patience=PATIENCE):
        [wanted] = levels(level)
        return self.wait_for_status(name, lambda found, *_: found == wanted, f'level {wanted}', patience)

    def wait_for_chunks(self, count):
        self.peer.wait_for(lambda: len(self.chunks) >= count, PATIENCE, f'{count} chunks')

    def change(self, number):
        request = ChangeState.Request(transition=Transition(id=number))
        self.assertTrue(self.peer.call(ChangeState, f'{NODE}/change_state', request, PATIENCE).success)


class NameTest(DiagnosticsCase):
    def test_a_second_node_of_the_same_name_is_a_warning(self):
        self.start()
        level, _, values = self.wait_for_status(NAME, lambda *_: True, 'said')
        self.assertEqual((level, values['other nodes of this name']), (*levels(OK), '0'))
        with NodeProcess(parameters(self.snapshot), domain_id=self.peer.domain_id) as second:
            second.wait_for_log('ready as /policy', PATIENCE)
            _, message, values = self.wait_for_level(NAME, WARN)
            self.assertIn('another node has the name /policy', message)
            self.assertIn('-r __node:=NAME', message)
            self.line(self.node, self.peer, 'another node has the name /policy')
            self.peer.spin(3)
            self.assertEqual(self.node.log().count('another node has the name'), 1, 'it is said once')
        self.wait_for_level(NAME, OK)


class UselessInputTest(DiagnosticsCase):
    """Inputs that come in time, but of which no prediction can be made."""

    @classmethod
    def setUpClass(cls):
        cls.snapshot = synthetic_snapshot('tiny', 'n17')

    def result_of_goal(self):
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        sent = client.send_goal_async(PredictChunk.Goal(instruction='pick the pear', chunks=1))
        self.peer.wait_for(sent.done, PATIENCE, 'the answer to the goal')
        result = sent.result().get_result_async()
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        return result.result().result

    def test_case_61_a_camera_of_another_shape_is_an_error_and_the_input_of_the_goal(self):
        parameters = droid.parameters(self.snapshot, rate_hz=0.0, goal_start_timeout_ms=500)
        self.node, self.peer = self.start_node(parameters)
        self.listen()
        robot = Droid(self.peer)
        robot.still[WRIST] = picture(320, 240, 1)
        sentence = f"camera '{WRIST}' gives frames of 320x240"
        refused = lambda level, message, _: level in levels(ERROR) and sentence in message
        _, message, values = self.wait_for_status(f'policy: camera {WRIST}', refused, 'refused')
        self.assertIn('width divided by height must be from 1.686 to 1.814', message)
        self.assertGreater(int(values['refused']), 0)
        self.wait_for_level(f'policy: camera {EXTERIOR}', OK)

        result = self.result_of_goal()
        self.assertEqual((result.reason, result.input), (PredictChunk.Result.BAD_INPUT, WRIST), result.message)
        self.assertIn(sentence, result.message)

    def test_case_61_a_state_that_is_no_pose_is_a_warning_and_the_input_of_the_goal(self):
        topic, columns = '/pose', [f'c{number}' for number in range(9)]
        parameters = droid.parameters(self.snapshot, rate_hz=0.0, goal_start_timeout_ms=500)
        pose = {'source': 'columns', 'topic': topic, 'columns': columns, 'layout': list(columns)}
        parameters['state']['eef_9d'] = pose
        self.node, self.peer = self.start_node(parameters)
        self.listen()
        robot = Droid(self.peer, speaks=('cameras', 'joints', 'gripper'))
        publisher = self.peer.publisher(Float64MultiArray, topic)
        robot.every(50.0, lambda: publisher.publish(Float64MultiArray(data=[0.0] * len(columns))))
        self.wait_for_level(f'policy: state {topic}', OK)

        result = self.result_of_goal()
        self.assertEqual((result.reason, result.input), (PredictChunk.Result.BAD_INPUT, topic), result.message)
        sentence = "state group 'eef_9d': the two rows of the rotation are zero"
        self.assertIn(sentence, result.message)
        refused = lambda level, message, _: level in levels(WARN) and sentence in message
        self.wait_for_status(f'policy: state {topic}', refused, 'refused')


class InputTest(DiagnosticsCase):
    def test_case_01_a_camera_that_stops_is_an_error_at_once(self):
        self.start(camera_max_age_ms=400)
        robot = Robot(self.peer)
        self.wait_for_chunks(3)
        self.wait_for_level(CAMERA_STATUS, OK)
        self.wait_for_level(ENGINE, OK)
        robot.frame = None
        stopped = time.monotonic()
        _, message, values = self.wait_for_level(CAMERA_STATUS, ERROR, 5)
        _, of_engine, engine = self.wait_for_level(ENGINE, ERROR, 5)
        # The limit, and two reports on a loaded machine.
        self.assertLess(time.monotonic() - stopped, 3.5)
        for text in [message, of_engine, engine['waiting for']]:
            self.assertIn(f"camera '{CAMERA}' (topic {CAMERA_TOPIC})", text)
            self.assertIn('nothing received for', text)
        self.assertGreater(float(values['age [s]']), 0.4)
        self.assertEqual(values['age limit [s]'], '0.400')
        self.assertGreater(int(engine['waited: stale']), 0)
        self.wait_for_level(JOINT_STATUS, OK)
        # The rate of the last seconds goes down to nothing.
        is_silent = lambda level, message, values: float(values['rate [Hz]']) == 0
        self.wait_for_status(CAMERA_STATUS, is_silent, 'no rate')
        robot.show(picture(256, 256, 3))
        self.wait_for_level(CAMERA_STATUS, OK)
        self.wait_for_level(ENGINE, OK)

    def test_case_95_an_input_that_never_comes(self):
        self.start()
        looked = lambda level, message, values: values.get('publishers') == '0'
        level, message, values = self.wait_for_status(CAMERA_STATUS, looked, 'no publisher')
        self.assertEqual(level, *levels(STALE))
        self.assertIn('no frame yet; nobody publishes there', message)
        self.assertEqual((values['received'], values['age [s]']), ('0', 'unknown'))
        _, message, _ = self.wait_for_level(ENGINE, ERROR)
        self.assertIn(CAMERA, message)
        self.assertIn(JOINT_TOPIC, message)

    def test_rates_ages_and_lost_messages(self):
        self.start()
        robot = Robot(self.peer)
        self.peer.node.destroy_timer(robot.timer)
        count = 0
        send = robot.camera.publish

        def publish():
            nonlocal count
            count += 1
            # Every tenth frame is lost on the way.
            robot.camera.publish = send if count % 10 else lambda message: None
            robot.publish()

        self.peer.node.create_timer(0.05, publish)
        many = lambda level, message, values: int(values['received']) > 120
        level, message, values = self.wait_for_status(CAMERA_STATUS, many, '120 frames')
        lost, received = int(values['lost']), int(values['received'])
        self.assertAlmostEqual(lost / (lost + received), 0.1, delta=0.06)
        self.assertAlmostEqual(float(values['rate [Hz]']), 18, delta=3)
        self.assertAlmostEqual(float(values['expected rate [Hz]']), 20, delta=2)
        self.assertLess(float(values['age [s]']), 1)
        self.assertEqual((values['topic'], values['publishers']), (CAMERA_TOPIC, '1'))
        self.assertEqual((level, message), (*levels(WARN), 'messages are lost on the way'))
        _, _, values = self.wait_for_status(JOINT_STATUS, many, '120 samples')
        self.assertLess(int(values['lost']), 5)
        self.assertEqual(values['refused'], '0')

    def test_refused_messages_and_why(self):
        self.start()
        robot = Robot(self.peer)
        bad = image_message(picture(64, 64, 1))
        bad.step = 7
        self.wait_for_chunks(1)
        timer = self.peer.node.create_timer(0.5, lambda: robot.camera.publish(bad))
        refused = lambda level, message, values: int(values['refused']) > 1
        level, message, values = self.wait_for_status(CAMERA_STATUS, refused, 'refused messages')
        self.assertEqual(level, *levels(WARN))
        self.assertIn('step', values['latest refusal'])
        self.assertEqual(message, f'messages are refused: {values["latest refusal"]}')
        self.peer.node.destroy_timer(timer)
        self.wait_for_level(CAMERA_STATUS, OK)

    def test_every_input_has_a_status(self):
        node, self.peer = self.start_node(droid.parameters(synthetic_snapshot('tiny', 'n17')))
        self.listen()
        Droid(self.peer)
        self.wait_for_chunks(2)
        transform = f'policy: state tf {droid.BASE} {droid.TIP}'
        names = [
            *(f'policy: camera {key}' for key in CAMERA_HZ),
            *(f'policy: state {topic}' for topic in [droid.GRIPPER_TOPIC, '/joint_states']),
        ]
        for name in [*names, transform]:
            _, _, values = self.wait_for_status(name, lambda level, *_: level in levels(OK, WARN), 'is well')
            self.assertGreater(float(values['rate [Hz]']), 1, name)
        [array] = self.arrays[-1:] or [self.peer.wait_for(lambda: self.arrays, PATIENCE, 'diagnostics')[-1]]
        self.assertEqual(
            sorted(status.name for status in array.status), sorted([*names, transform, ENGINE, BACKEND, NAME])
        )
        self.assertEqual({status.hardware_id for status in array.status}, {droid.TAG})


class EngineTest(DiagnosticsCase):
    def test_case_08_the_engine_counts_chunks_and_not_the_warm_up(self):
        self.start(warm_up=3)
        Robot(self.peer)
        self.wait_for_chunks(5)
        enough = lambda level, message, values: int(values['chunks']) >= 5
        level, message, values = self.wait_for_status(ENGINE, enough, 'five chunks')
        self.assertEqual((level, message), (*levels(OK), 'predicts by the timer'))
        self.assertEqual(values['predictions measured'], values['chunks'])
        for stage in [*STAGES, 'predict', 'node', 'latency']:
            p50, p99, largest = (float(values[f'{stage} {part} [ms]']) for part in ['p50', 'p99', 'max'])
            self.assertTrue(0 < p50 <= p99 <= largest, f'{stage}: {p50} {p99} {largest}')
        self.assertGreater(float(values['latency p50 [ms]']), float(values['predict p50 [ms]']))
        self.assertEqual((values['goals running'], values['waiting for'], values['stalls']), ('0', 'nothing', '0'))
        self.assertEqual((values['non-finite outputs'], values['latest failure']), ('0', 'none'))

    def test_case_46_seams_between_chunks(self):
        self.start(camera_max_age_ms=600)
        robot = Robot(self.peer)
        some = lambda level, message, values: int(values['seams']) >= 3
        level, _, values = self.wait_for_status(ENGINE, some, 'seams')
        self.assertEqual((level, values['stalls'], values['longest stall [s]']), (*levels(OK), '0', '0.000'))
        # The last seam of all, once the chunks have ended.
        robot.frame = None
        self.wait_for_level(ENGINE, ERROR)
        old, new = self.chunks[-2:]
        completed = nanoseconds(new.completed)
        _, _, now = self.wait_for_level(ENGINE, ERROR)
        self.assertEqual(int(now['seams']), new.sequence)
        told = np.array([[float(now[f'last {what} of {group} [{unit}]']) for what, unit in SEAM] for group in GROUPS])
        self.assertGreater(told.min(), 0)
        # The seam is some time after the completion, a busy machine's 0.2 s at most, and at one time in all groups.
        at = lambda later: np.array([seam(old, new, group, completed + later) for group in GROUPS])
        expected = [at(n * 500_000) for n in range(400)]
        distance = min(np.abs(told / seams - 1).max() for seams in expected)
        self.assertLess(distance, 0.02, f'{told}, expected {expected[0]}')

    def test_case_46_a_stream_with_gaps_is_a_warning(self):
        # A chunk lasts 0.8 s.
        self.start(rate_hz=0.7)
        Robot(self.peer)
        stalled = lambda level, message, values: int(values['stalls']) >= 1
        level, message, values = self.wait_for_status(ENGINE, stalled, 'a stall')
        self.assertEqual(level, *levels(WARN))
        self.assertIn('nothing left of the one before', message)
        self.assertGreater(float(values['longest stall [s]']), 0.1)

    def test_missed_moments_are_a_warning(self):
        given = parameters(synthetic_snapshot('mid'), rate_hz=200.0)
        self.node, self.peer = self.start_node(given)
        self.listen()
        Robot(self.peer)
        missed = lambda level, message, values: int(values['timer moments missed']) > 10
        level, message, _ = self.wait_for_status(ENGINE, missed, 'missed moments')
        self.assertEqual(level, *levels(WARN))
        self.assertIn('moments are missed', message)

    def test_chunks_beyond_a_limit(self):
        self.start(action={'waist': {'position_min': [-0.001], 'position_max': [0.001]}})
        Robot(self.peer)
        level, message, values = self.wait_for_level(ENGINE, ERROR)
        refused = lambda level, message, values: int(values['chunks refused']) > 0
        _, message, values = self.wait_for_status(ENGINE, refused, 'a refused chunk')
        self.assertTrue(message.startswith('predictions fail: '), message)
        self.assertIn('waist', values['latest refusal'])
        self.assertEqual(values['chunks'], '0')

    def test_case_16_an_output_that_is_not_finite(self):
        self.start(rate_hz=0.0)
        Robot(self.peer)
        self.wait_for_level(ENGINE, OK)
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        noise = [3e38] * (50 * 128)
        sent = client.send_goal_async(PredictChunk.Goal(instruction='wave', noise=noise))
        self.peer.wait_for(sent.done, PATIENCE, 'the answer to the goal')
        self.assertTrue(sent.result().accepted)
        result = sent.result().get_result_async()
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        self.assertEqual(result.result().status, GoalStatus.STATUS_ABORTED)
        self.assertEqual(result.result().result.reason, PredictChunk.Result.NON_FINITE_OUTPUT)
        _, message, values = self.wait_for_level(ENGINE, ERROR)
        self.assertIn('predictions fail', message)
        self.assertEqual((values['non-finite outputs'], values['chunks']), ('1', '0'))

    def test_a_goal_is_told(self):
        self.start(rate_hz=0.0)
        Robot(self.peer)
        _, message, _ = self.wait_for_level(ENGINE, OK)
        self.assertIn('idle', message)
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        sent = client.send_goal_async(PredictChunk.Goal(instruction='wave', chunks=1_000_000))
        self.peer.wait_for(sent.done, PATIENCE, 'the answer to the goal')
        runs = lambda level, message, values: values['goals running'] == '1' and int(values['seams']) > 0
        level, message, _ = self.wait_for_status(ENGINE, runs, 'a goal')
        self.assertEqual((level, message), (*levels(OK), 'works on a goal'))


class LifeTest(DiagnosticsCase):
    def test_every_state_is_told(self):
        self.start(autostart=False)
        level, message, _ = self.wait_for_level(ENGINE, OK)
        self.assertEqual(message, 'unconfigured')
        _, message, _ = self.wait_for_level(BACKEND, OK)
        self.assertEqual(message, 'no policy is configured')
        self.change(Transition.TRANSITION_CONFIGURE)
        inactive = lambda level, message, values: message == 'inactive'
        self.wait_for_status(ENGINE, inactive, 'inactive')
        level, message, _ = self.wait_for_level(CAMERA_STATUS, OK)
        self.assertEqual(message, 'not subscribed: the node is inactive')
        _, message, values = self.wait_for_level(BACKEND, OK)
        self.assertEqual((values['version'], values['embodiment'], values['threads']), ('n16', 'gr1', '1'))
        self.assertEqual((values['snapshot'], values['backend']), (str(self.snapshot), message))
        self.assertAlmostEqual(int(values['memory [MiB]']), self.node.resident_bytes() / 2**20, delta=100)
        self.change(Transition.TRANSITION_ACTIVATE)
        Robot(self.peer)
        self.wait_for_level(CAMERA_STATUS, OK)
        self.wait_for_level(ENGINE, OK)
        self.change(Transition.TRANSITION_DEACTIVATE)
        self.wait_for_status(ENGINE, inactive, 'inactive')

    def test_once_a_second(self):
        self.start(autostart=False)
        self.peer.wait_for(lambda: self.arrays, PATIENCE, 'diagnostics')
        count, begin = len(self.arrays), time.monotonic()
        self.peer.spin(4)
        self.assertAlmostEqual((len(self.arrays) - count) / (time.monotonic() - begin), 1, delta=0.3)


class TimingTest(DiagnosticsCase):
    def test_the_times_of_every_chunk(self):
        self.start()
        timings = self.peer.collect(Timing, f'{NODE}/timing')
        Robot(self.peer)
        self.wait_for_chunks(4)
        self.peer.wait_for(lambda: len(timings) >= 3, PATIENCE, 'timings')
        chunks = {nanoseconds(chunk.header.stamp): chunk for chunk in self.chunks}
        matched = [(chunks[nanoseconds(t.header.stamp)], t) for t in timings if nanoseconds(t.header.stamp) in chunks]
        self.assertGreaterEqual(len(matched), 2)
        for chunk, timing in matched:
            of_chunk = {stage.stage: stage.seconds * 1e3 for stage in chunk.timings}
            stages = {stage: getattr(timing, f'{stage}_ms') for stage in STAGES}
            for stage, ms in stages.items():
                self.assertAlmostEqual(ms, of_chunk[stage], places=9)
            self.assertAlmostEqual(timing.predict_ms, sum(stages.values()), delta=1e-6)
            whole = (nanoseconds(chunk.completed) - nanoseconds(chunk.header.stamp)) / 1e6
            # `completed` is written into the chunk just before it goes out.
            self.assertGreaterEqual(timing.latency_ms, whole)
            self.assertLess(timing.latency_ms, whole + 100)
            self.assertGreater(timing.node_ms, 0)
            self.assertGreater(timing.latency_ms, timing.predict_ms)


def tiles(rgb, rows, columns):
    """Mean colours in a coarse grid."""
    bands = np.array_split(rgb.astype(float), rows, 0)
    return np.array([[part.mean((0, 1)) for part in np.array_split(band, columns, 1)] for band in bands])


def middle(rgb):
    """The part of a picture that every policy sees."""
    height, width, _ = rgb.shape
    top, left = round(height * 0.025), round(width * 0.025)
    return rgb[top : height - top, left : width - left]


def pixels(message):
    assert message.step == 3 * message.width
    return np.frombuffer(bytes(message.data), np.uint8).reshape(message.height, message.width, 3)


class DebugImageTest(DiagnosticsCase):
    def images_made(self):
        _, _, values = self.wait_for_level(BACKEND, OK)
        return int(values['debug images'])

    def test_nothing_is_made_while_nobody_looks(self):
        self.start()
        robot = Robot(self.peer)
        robot.show(picture(320, 240, 5))
        self.wait_for_chunks(5)
        self.assertEqual(self.images_made(), 0)
        images = self.peer.node.create_subscription(Image, f'{NODE}/debug/image', lambda _: None, SENSOR_DATA)
        self.peer.wait_for(lambda: self.images_made() > 0, PATIENCE, 'a picture')
        self.peer.node.destroy_subscription(images)
        self.peer.spin(1.0)
        made = self.images_made()
        count = len(self.chunks)
        self.wait_for_chunks(count + 5)
        self.assertEqual(self.images_made(), made)

    def test_the_picture_of_the_observation(self):
        self.start()
        images = self.peer.collect(Image, f'{NODE}/debug/image', SENSOR_DATA)
        robot = Robot(self.peer)
        robot.show(picture(256, 256, 5))
        self.peer.wait_for(lambda: images, PATIENCE, 'a picture')
        image = images[0]
        self.assertEqual((image.encoding, image.width, image.height, image.step), ('rgb8', 252, 252, 756))
        stamp = nanoseconds(image.header.stamp)
        self.peer.wait_for(
            lambda: any(nanoseconds(chunk.header.stamp) == stamp for chunk in self.chunks), PATIENCE, 'the chunk of it'
        )
        [chunk] = [chunk for chunk in self.chunks if nanoseconds(chunk.header.stamp) == stamp]
        rgb, _ = robot.seen(chunk)
        made, expected = tiles(pixels(image), 6, 6), tiles(middle(rgb), 6, 6)
        self.assertLess(np.abs(expected - made).mean(), 4)
        other = tiles(middle(picture(256, 256, 6)), 6, 6)
        self.assertGreater(np.abs(other - made).mean(), 20)

    def test_cameras_from_left_to_right_times_from_top_to_bottom(self):
        _, self.peer = self.start_node(droid.parameters(synthetic_snapshot('tiny', 'n17')))
        self.listen()
        images = self.peer.collect(Image, f'{NODE}/debug/image', SENSOR_DATA)
        robot = Droid(self.peer)
        by_stamp = lambda: {nanoseconds(chunk.header.stamp): chunk for chunk in self.chunks}
        both = lambda: next((image for image in images if nanoseconds(image.header.stamp) in by_stamp()), None)
        self.peer.wait_for(lambda: len(self.chunks) > 8, PATIENCE, 'a history of frames')
        images.clear()
        image = self.peer.wait_for(both, PATIENCE, 'a picture and its chunk')
        self.assertEqual((image.width, image.height), (2 * 448, 2 * 256))
        frames, _ = robot.seen(by_stamp()[nanoseconds(image.header.stamp)])
        shown = pixels(image)
        expected = {(row, column): frames[key][row] for row in (0, 1) for column, key in enumerate([EXTERIOR, WRIST])}
        for row, column in expected:
            made = tiles(shown[256 * row : 256 * (row + 1), 448 * column : 448 * (column + 1)], 4, 7)
            distance = {place: np.abs(tiles(middle(rgb), 4, 7) - made).mean() for place, rgb in expected.items()}
            self.assertLess(distance[row, column], 4, f'row {row}, column {column}: {distance}')
            self.assertEqual(min(distance, key=distance.get), (row, column), distance)


if __name__ == '__main__':
    unittest.main()
