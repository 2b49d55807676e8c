"""The node under the load of a robot: two cameras of 1280x720 at 30 Hz, joint states at 100 Hz, a tiny policy at 10 Hz.

    scripts/load.sh                    60 seconds
    scripts/load.sh --seconds 10

Reports chunks missed, their age, what the node itself adds to a prediction, and the processor time of the node. Exit
status 1 if a chunk was missed or was older than a period, or if the node adds 2 ms or more in one case of a hundred.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np
from droid import CAMERA_HZ, GRIPPER_TOPIC, JOINTS, Droid, parameters
from gr00t_blackhole.msg import ActionChunk, Timing
from harness import RELIABLE, ROOT, NodeProcess, Peer, domain
from rclpy.serialization import serialize_message
from rig import CHUNK, NODE, image_message, joint_state, nanoseconds, picture, synthetic_snapshot, time_message
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Float64

CAMERA_RATE_HZ, JOINT_RATE_HZ, PREDICTIONS_HZ = 30.0, 100.0, 10.0
WIDTH, HEIGHT = 1280, 720
PROFILE = ROOT / 'config/fastdds_large_images.xml'
OVERHEAD_LIMIT_MS = 2.0
# Until everybody has found everybody [s].
WARM_UP_S = 3.0


def publish_cameras(domain_id):
    """The camera drivers: a process of their own, with the profile for large images."""
    with Peer(domain_id, 'cameras') as peer:
        # Serialised once: what is measured is the node, not Python.
        frames = [bytearray(serialize_message(image_message(picture(WIDTH, HEIGHT, seed)))) for seed in range(4)]
        publishers = [peer.publisher(Image, f'/{key}') for key in CAMERA_HZ]
        number, due = 0, time.monotonic()
        while True:
            for publisher in publishers:
                number += 1
                frame = frames[number % len(frames)]
                stamp = time_message(peer.node.get_clock().now().nanoseconds)
                # The header's stamp follows the four bytes that name the encoding.
                frame[4:12] = stamp.sec.to_bytes(4, 'little') + stamp.nanosec.to_bytes(4, 'little')
                publisher.publish(bytes(frame))
            due += 1.0 / CAMERA_RATE_HZ
            time.sleep(max(0.0, due - time.monotonic()))


def publish_joints(peer, robot):
    publisher = peer.publisher(JointState, '/joint_states')

    def publish():
        now = peer.node.get_clock().now().nanoseconds
        angle = now % 1_000_000_000_000 * 1e-9
        message = joint_state({joint: float(np.sin(angle + i)) for i, joint in enumerate(JOINTS)})
        message.header.stamp = time_message(now)
        publisher.publish(message)

    robot.every(JOINT_RATE_HZ, publish)
    gripper = peer.publisher(Float64, GRIPPER_TOPIC)
    robot.every(25.0, lambda: gripper.publish(Float64(data=0.03)))


def measure(seconds):
    """Chunks, timings and processor time of so many seconds."""
    given = parameters(
        synthetic_snapshot('tiny', 'n17'),
        rate_hz=PREDICTIONS_HZ,
        camera_max_age_ms=500,
        state_max_age_ms=500,
        frozen_camera_frames=0,
        state_jump_max_rad_s=0.0,
    )
    with domain() as number, NodeProcess(given, domain_id=number) as node, Peer(number, 'robot') as peer:
        node.wait_for_log('ready as', 60)
        environment = {**os.environ, 'FASTRTPS_DEFAULT_PROFILES_FILE': str(PROFILE)}
        argv = [sys.executable, __file__, '--cameras', str(number)]
        cameras = subprocess.Popen(argv, env=environment)
        try:
            robot = Droid(peer, speaks=('tf', 'tf_static'))
            publish_joints(peer, robot)
            chunks = peer.collect(ActionChunk, CHUNK, RELIABLE)
            timings = peer.collect(Timing, f'{NODE}/timing', RELIABLE)
            peer.wait_for(lambda: chunks, 60, 'the first chunk')
            peer.spin(WARM_UP_S)
            chunks.clear()
            timings.clear()
            begin, cpu = time.monotonic(), node.cpu_seconds()
            peer.spin(seconds)
            cpu = (node.cpu_seconds() - cpu) / (time.monotonic() - begin)
        finally:
            cameras.terminate()
            cameras.wait()
        log = node.log()
    return chunks, timings, cpu, log


def quantiles(values):
    return ' / '.join(f'{value:.2f}' for value in np.quantile(values, [0.5, 0.99, 1.0]))


def report(seconds, chunks, timings, cpu, log):
    """Prints what was measured; returns what is not as it should be."""
    period = 1.0 / PREDICTIONS_HZ
    wanted = int(seconds * PREDICTIONS_HZ)
    ages = [(nanoseconds(c.completed) - nanoseconds(c.header.stamp)) / 1e9 for c in chunks]
    if not chunks or not timings:
        warnings = [line for line in log.splitlines() if ' WARN ' in line]
        return ['there was no chunk; the node said last:\n' + '\n'.join(warnings[-3:])]
    numbers = [chunk.sequence for chunk in chunks]
    gaps = numbers[-1] - numbers[0] + 1 - len(numbers)
    node_ms = [timing.node_ms for timing in timings]
    print(f'chunks:          {len(chunks)} of {wanted}, {gaps} lost on the way')
    print(f'age [ms]:        {quantiles(np.multiply(ages, 1e3))} (median / p99 / largest; a period is {1e3 * period:.0f})')
    print(f'prediction [ms]: {quantiles([timing.predict_ms for timing in timings])}')
    print(f'node [ms]:       {quantiles(node_ms)} (what the node adds to the policy)')
    print(f'processor:       {cpu:.2f} cores, the policy included')
    waiting = log.count('waiting for')
    wrong = []
    # The first and the last moment may fall outside.
    if len(chunks) < wanted - 1 or gaps:
        wrong.append(f'{wanted - len(chunks)} chunks were missed ({waiting} times the log says "waiting for")')
    if max(ages) > period:
        wrong.append(f'{sum(age > period for age in ages)} chunks were older than a period')
    if np.quantile(node_ms, 0.99) >= OVERHEAD_LIMIT_MS:
        wrong.append(f'the node adds more than {OVERHEAD_LIMIT_MS} ms')
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--seconds', type=float, default=60.0, help='how long to measure (default 60)')
    parser.add_argument('--cameras', type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cameras is not None:
        publish_cameras(arguments.cameras)
    wrong = report(arguments.seconds, *measure(arguments.seconds))
    for sentence in wrong:
        print(f'WRONG: {sentence}')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
