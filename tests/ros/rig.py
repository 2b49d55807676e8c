"""A made-up robot for tests of the node: its cameras and joints as messages, and the chunk that the offline command
computes from the same values.
"""

import json
import random
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from builtin_interfaces.msg import Time
from harness import ROOT, node_binary
from sensor_msgs.msg import CompressedImage, Image, JointState

NODE = '/policy'
CHUNK = f'{NODE}/action_chunk'
TRAJECTORY = f'{NODE}/joint_trajectory'
CAMERA = 'ego_view_bg_crop_pad_res256_freq20'
CAMERA_TOPIC = '/camera/ego_view/image_raw'
JOINT_TOPIC = '/joint_states'
INSTRUCTION = 'pick the pear from the counter and place it in the plate'

# Joint names of each state group, in the checkpoint's order, as in the robot's configuration.
GR1 = yaml.safe_load((ROOT / 'config/gr1.yaml').read_text())['/**']['ros__parameters']
GROUPS = {name: group['joints'] for name, group in GR1['state'].items()}
JOINTS = [joint for joints in GROUPS.values() for joint in joints]


def parameters(snapshot, /, **changes):
    """Parameters of a node that serves the robot with raw frames; `changes` are added on top."""
    made = json.loads(json.dumps(GR1))
    made['camera'][CAMERA] = {'topic': CAMERA_TOPIC, 'transport': 'raw'}
    # Messages of a loaded test machine come late; the tests that are about age set their own limits.
    made |= {'camera_max_age_ms': 3000, 'state_max_age_ms': 3000, 'rate_hz': 5.0}
    # The pictures stand still and the poses jump; the tests of those gates set their limits.
    made |= {'frozen_camera_frames': 0, 'state_jump_max_rad_s': 0.0}
    return made | {'snapshot': str(snapshot), 'instruction': INSTRUCTION, 'threads': 1} | changes


def synthetic_snapshot(size, version='n16'):
    """A synthetic checkpoint, written once per machine and version of the binary."""
    binary = node_binary()
    mark = f'{binary.stat().st_mtime_ns:x}'
    out = Path(tempfile.gettempdir()) / f'gr00t_blackhole_{version}_{size}_{mark}'
    if not out.exists():
        argv = [binary, 'synth', '--version', version, '--size', size, '--out', out]
        subprocess.run(argv, check=True, capture_output=True, text=True)
    return out


def nanoseconds(stamp):
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def time_message(ns):
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


def picture(width, height, seed):
    """[height, width, 3], 8-bit RGB: smooth colours and a little noise, different for every seed."""
    noise = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    phase = noise.uniform(0, 6, 3)
    waves = [127 + 100 * np.sin(x / 37 + phase[c]) * np.cos(y / 29 + c) for c in range(3)]
    return (np.stack(waves, -1) + noise.uniform(-20, 20, (height, width, 3))).clip(0, 255).astype(np.uint8)


def image_message(rgb, encoding='rgb8', padding=0, big_endian=False):
    """The picture as a message, every row followed by `padding` bytes."""
    height, width, _ = rgb.shape
    colours = {'rgb': rgb, 'bgr': rgb[..., ::-1], 'rgba': rgb, 'bgra': rgb[..., ::-1]}[encoding.rstrip('168')]
    if 'a' in encoding:
        colours = np.concatenate([colours, np.full((height, width, 1), 77, np.uint8)], -1)
    if encoding.endswith('16'):
        # The low byte is noise that the node has to drop.
        low = np.random.default_rng(1).integers(0, 256, colours.shape)
        colours = (colours.astype(np.uint16) * 256 + low).astype('>u2' if big_endian else '<u2')
    rows = colours.reshape(height, -1).view(np.uint8)
    rows = np.concatenate([rows, np.full((height, padding), 0xEE, np.uint8)], -1)
    message = Image(height=height, width=width, encoding=encoding, is_bigendian=int(big_endian), step=rows.shape[1])
    message.data = rows.tobytes()
    return message


def png(rgb):
    """The picture as the bytes of a PNG file."""
    height, width, _ = rgb.shape

    def block(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), rgb.reshape(height, -1)], -1)
    blocks = block(b'IHDR', header) + block(b'IDAT', zlib.compress(rows.tobytes(), 1)) + block(b'IEND', b'')
    return b'\x89PNG\r\n\x1a\n' + blocks


def compressed_message(rgb, label='rgb8; png compressed bgr8'):
    return CompressedImage(format=label, data=png(rgb))


def joint_state(positions, extra=('neck_joint', 'left_knee_joint'), leave_out=(), shuffle=random.Random(5)):
    """A message with the joints in an order of its own, joints that belong to no group, velocities and efforts."""
    names = [name for name in [*positions, *extra] if name not in leave_out]
    shuffle.shuffle(names)
    message = JointState(name=names, position=[positions.get(name, 9.75) for name in names])
    message.velocity = [-3.5] * len(names)
    message.effort = [11.0] * len(names)
    return message


def pose(seed):
    """A position for every joint, all different."""
    values = np.random.default_rng(seed).uniform(-1.2, 1.2, len(JOINTS))
    return dict(zip(JOINTS, values.tolist(), strict=True))


@dataclass
class Robot:
    """Publishes frames and joint states again and again, each with a stamp of its own, and remembers what was in them.

    What it publishes can be changed at any time; `None` stops a topic.
    """

    peer: object
    period: float = 0.05
    camera_topic: str = CAMERA_TOPIC
    joint_topic: str = JOINT_TOPIC
    camera_type: type = Image
    frame: object = None
    joints: object = None
    # Stamp of a message to what it shows: a picture [height, width, 3], and positions by joint.
    pictures: dict = field(default_factory=dict)
    poses: dict = field(default_factory=dict)
    # Replaced by tests that are about clocks.
    now: object = None

    def __post_init__(self):
        node = self.peer.node
        self.now = self.now or (lambda: node.get_clock().now().nanoseconds)
        self.camera = self.peer.publisher(self.camera_type, self.camera_topic)
        self.joint_states = self.peer.publisher(JointState, self.joint_topic)
        self.show(picture(256, 256, 0))
        self.hold(pose(0))
        self.timer = node.create_timer(self.period, self.publish)

    def show(self, rgb, message=None):
        """Publishes this picture from now on, as `message` if that is given."""
        default = image_message if self.camera_type is Image else compressed_message
        self.frame = (rgb, message or default(rgb))

    def hold(self, positions, **how):
        """Publishes these positions from now on."""
        self.joints = (positions, how)

    def publish(self):
        if self.joints:
            positions, how = self.joints
            message, stamp = joint_state(positions, **how), self.now()
            message.header.stamp = time_message(stamp)
            self.poses[stamp] = positions
            self.joint_states.publish(message)
        if self.frame:
            rgb, message = self.frame
            stamp = self.now()
            message.header.stamp = time_message(stamp)
            self.pictures[stamp] = rgb
            self.camera.publish(message)

    def seen(self, chunk):
        """The picture and the positions that went into a chunk, by the stamps that it names."""
        stamps = {age.input: nanoseconds(age.stamp) for age in chunk.ages}
        arms = {stamps[group] for group in GROUPS}
        assert len(arms) == 1, f'one joint state feeds all groups, not those of {arms}'
        return self.pictures[stamps[CAMERA]], self.poses[arms.pop()]


def offline_chunk(snapshot, rgb, positions, seed, instruction=INSTRUCTION):
    """Group name to [horizon, dim] f32: what `predict` answers for this observation."""
    state = {group: [positions[joint] for joint in joints] for group, joints in GROUPS.items()}
    return predict(snapshot, 'gr1', {CAMERA: [rgb]}, state, seed, instruction)


def predict(snapshot, embodiment, frames, state, seed, instruction, arguments=()):
    """Group name to [horizon, dim] f32: what `predict` answers. Per camera a list of pictures, oldest first."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for camera, pictures in frames.items():
            names[camera] = [f'{camera}_{number}.png' for number in range(len(pictures))]
            for name, rgb in zip(names[camera], pictures, strict=True):
                (Path(folder) / name).write_bytes(png(rgb))
        observation = {'instruction': instruction, 'frames': names, 'state': state, 'seed': seed}
        path = Path(folder) / 'observation.json'
        path.write_text(json.dumps(observation))
        argv = [node_binary(), 'predict', '--snapshot', snapshot, '--observation', path, '--embodiment', embodiment]
        argv += arguments
        answer = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return {name: np.asarray(answer['actions'][name], np.float32) for name in answer['action_keys']}


def values(chunk):
    """Group name to [horizon, dim] f32 of a received chunk."""
    return {group.name: np.asarray(group.values, np.float32).reshape(chunk.horizon, group.dim) for group in chunk.groups}
