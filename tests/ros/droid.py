"""A made-up robot in the manner of DROID: two cameras of different rates, joints, a gripper on a topic of its own, and
the pose of its tool in TF; each message with what it said, so that an observation can be put together again.
"""

import json
from dataclasses import dataclass, field

import numpy as np
import yaml
from geometry_msgs.msg import TransformStamped
from harness import LATCHED, RELIABLE, ROOT
from rig import image_message, joint_state, nanoseconds, picture, time_message
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

DROID = yaml.safe_load((ROOT / 'config/droid.yaml').read_text())['/**']['ros__parameters']
TAG = DROID['embodiment']
INSTRUCTION = 'put the pear on the plate'
EXTERIOR, WRIST = 'exterior_image_1_left', 'wrist_image_left'
CAMERA_HZ = {EXTERIOR: 30.0, WRIST: 20.0}
BASE, TIP = DROID['state']['eef_9d']['base_frame'], DROID['state']['eef_9d']['tip_frame']
ELBOW, FLANGE = 'panda_link4', 'panda_link8'
JOINTS = DROID['state']['joint_position']['joints']
GRIPPER_TOPIC = '/gripper/opening'
OPEN_M = DROID['state']['gripper_position']['source_range'][0]
# From the flange to the frame of the data, x y z w.
FLANGE_TO_TIP = (0.5, -0.5, -0.5, 0.5)

# Frames that differ, so that a wrong one shows; more than both cameras show in the second that the policy looks back.
PICTURES = [picture(320, 180, seed) for seed in range(97)]


def parameters(snapshot, /, **changes):
    """Parameters of a node that serves the robot with raw frames; `changes` are added on top."""
    made = json.loads(json.dumps(DROID))
    made['camera'] = {key: {'topic': f'/{key}', 'transport': 'raw'} for key in CAMERA_HZ}
    # Messages of a loaded test machine come late; the tests that are about age set their own limits.
    made |= {'camera_max_age_ms': 3000, 'state_max_age_ms': 3000, 'rate_hz': 5.0}
    return made | {'snapshot': str(snapshot), 'instruction': INSTRUCTION, 'threads': 1} | changes


def product(a, b):
    """Product of two quaternions x y z w."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return np.array([
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ])


def matrix(q):
    """Rotation matrix of a unit quaternion x y z w."""
    x, y, z, w = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])


def slerp(a, b, share):
    a, b = np.asarray(a), np.asarray(b)
    if a @ b < 0:
        b = -b
    angle = np.arccos(min(a @ b, 1.0))
    if angle < 1e-9:
        return a
    return (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / np.sin(angle)


def rot6d(translation, rotation):
    """Position and the first two rows of the rotation matrix."""
    return [*translation, *rotation[0], *rotation[1]]


@dataclass
class Link:
    """A moving frame: stamp to position and quaternion."""

    parent: str
    child: str
    speed: float
    poses: dict = field(default_factory=dict)

    def at(self, ns):
        """The pose that the robot has at a moment."""
        seconds = ns % 1_000_000_000_000 * 1e-9
        angle, tilt = np.sin(self.speed * seconds), 0.4 * np.cos(self.speed * seconds)
        turn = product((0, 0, np.sin(angle / 2), np.cos(angle / 2)), (np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)))
        return np.array([0.3 + 0.1 * angle, 0.2 * tilt, 0.25]), turn

    def message(self, stamp, sign):
        """The pose of a moment as a message; a quaternion and its negative are the same rotation."""
        translation, turn = self.at(stamp)
        self.poses[stamp] = (translation, turn)
        return transform(stamp, self.parent, self.child, translation, sign * turn)

    def interpolated(self, ns):
        """Position and rotation matrix between the messages before and after a moment."""
        before = max(stamp for stamp in self.poses if stamp <= ns)
        after = min(stamp for stamp in self.poses if stamp >= ns)
        share = (ns - before) / (after - before) if after > before else 0.0
        (from_place, from_turn), (to_place, to_turn) = self.poses[before], self.poses[after]
        return from_place + share * (to_place - from_place), matrix(slerp(from_turn, to_turn, share))


def transform(stamp, parent, child, translation, turn):
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.header.stamp = time_message(stamp)
    place, rotation = message.transform.translation, message.transform.rotation
    place.x, place.y, place.z = map(float, translation)
    rotation.x, rotation.y, rotation.z, rotation.w = map(float, turn)
    return message


class Droid:
    """Publishes everything at its own rate. Each topic can be stopped by taking its name out of `speaks`."""

    def __init__(self, peer, speaks=('cameras', 'joints', 'gripper', 'tf', 'tf_static')):
        self.peer, self.node = peer, peer.node
        self.speaks = set(speaks)
        # What a camera shows again and again in place of the pictures.
        self.still = {}
        self.pictures = {key: {} for key in CAMERA_HZ}
        self.positions = {}
        self.links = [Link(BASE, ELBOW, 1.1), Link(ELBOW, FLANGE, 0.7)]
        self.opening = 0.03
        self.shown = 0
        self.timers = []
        if 'cameras' in self.speaks:
            for key, rate in CAMERA_HZ.items():
                publisher = peer.publisher(Image, f'/{key}')
                self.every(rate, lambda key=key, publisher=publisher: self.show(key, publisher))
        if 'joints' in self.speaks:
            self.joint_states = peer.publisher(JointState, '/joint_states')
            self.every(50.0, self.hold)
        if 'gripper' in self.speaks:
            self.gripper = peer.publisher(Float64, GRIPPER_TOPIC)
            self.every(25.0, lambda: self.gripper.publish(Float64(data=self.opening)))
        if 'tf' in self.speaks:
            self.tf = peer.publisher(TFMessage, '/tf', RELIABLE)
            self.every(50.0, self.move)
        if 'tf_static' in self.speaks:
            self.tf_static = peer.publisher(TFMessage, '/tf_static', LATCHED)
            self.tf_static.publish(TFMessage(transforms=[transform(0, FLANGE, TIP, (0, 0, 0.1), FLANGE_TO_TIP)]))

    def every(self, rate, call):
        self.timers.append(self.node.create_timer(1 / rate, call))

    def now(self):
        return self.node.get_clock().now().nanoseconds

    def show(self, key, publisher):
        if 'cameras' not in self.speaks:
            return
        self.shown += 1
        rgb, stamp = self.still.get(key, PICTURES[self.shown % len(PICTURES)]), self.now()
        self.pictures[key][stamp] = rgb
        message = image_message(rgb)
        message.header.stamp = time_message(stamp)
        publisher.publish(message)

    def hold(self):
        stamp = self.now()
        positions = np.sin(np.arange(len(JOINTS)) + stamp % 1_000_000_000_000 * 1e-9)
        self.positions[stamp] = dict(zip(JOINTS, positions.tolist(), strict=True))
        message = joint_state(self.positions[stamp])
        message.header.stamp = time_message(stamp)
        self.joint_states.publish(message)

    def move(self):
        if 'tf' not in self.speaks:
            return
        for number, link in enumerate(self.links):
            stamp = self.now()
            sign = -1 if (stamp // 1000 + number) % 2 else 1
            self.tf.publish(TFMessage(transforms=[link.message(stamp, sign)]))

    def pose(self, ns):
        """Position and rotation matrix of the tip in the base frame at a moment."""
        (upper_place, upper), (lower_place, lower) = (link.interpolated(ns) for link in self.links)
        flange = upper @ lower
        place = upper_place + upper @ (lower_place + lower @ np.array([0, 0, 0.1]))
        return place, flange @ matrix(FLANGE_TO_TIP)

    def seen(self, chunk):
        """Frames and state that went into a chunk, by the stamps that it names."""
        stamps = {(age.input, age.delta): nanoseconds(age.stamp) for age in chunk.ages}
        frames = {key: [self.pictures[key][stamps[key, delta]] for delta in (-15, 0)] for key in CAMERA_HZ}
        positions = self.positions[stamps['joint_position', 0]]
        state = {
            'eef_9d': [float(value) for value in rot6d(*self.pose(stamps['eef_9d', 0]))],
            'gripper_position': [1 - self.opening / OPEN_M],
            'joint_position': [positions[joint] for joint in JOINTS],
        }
        return frames, state
