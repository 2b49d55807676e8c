#!/usr/bin/env python3
"""Writes the bags of this directory with rosbags 0.11 (PyPI), a writer that shares no code with this project.

    python3.12 -m venv v && v/bin/pip install rosbags==0.11.9 && v/bin/python make.py

Each holds joint states every 100 ms and a string every second, from second 100 on, in this order of time; tests/bag/stranger.rs knows them.
"""

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STATES = 25
MILLISECOND = 1_000_000
START = 100_000 * MILLISECOND

store = get_typestore(Stores.ROS2_JAZZY)
types = store.types
Time = types["builtin_interfaces/msg/Time"]
Header = types["std_msgs/msg/Header"]
JointState = types["sensor_msgs/msg/JointState"]
String = types["std_msgs/msg/String"]


def state(number: int):
    stamp = START + number * 100 * MILLISECOND
    return JointState(
        Header(Time(stamp // 10**9, stamp % 10**9), "base"),
        ["elbow", "wrist"],
        np.array([number / 8, -number / 8]),
        np.array([]),
        np.array([]),
    )


def write(name: str, storage: StoragePlugin, mode: CompressionMode, version: int) -> None:
    writer = Writer(Path(__file__).parent / name, version=version, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        joints = writer.add_connection("/joint_states", JointState.__msgtype__, typestore=store)
        words = writer.add_connection("/words", String.__msgtype__, typestore=store)
        for number in range(STATES):
            received = START + number * 100 * MILLISECOND + 2 * MILLISECOND
            data = store.serialize_cdr(state(number), JointState.__msgtype__)
            writer.write(joints, received, data)
            if number % 10 == 0:
                data = store.serialize_cdr(String(f"second {number // 10}"), String.__msgtype__)
                writer.write(words, received, data)


write("mcap", StoragePlugin.MCAP, CompressionMode.NONE, 9)
write("mcap_chunk_zstd", StoragePlugin.MCAP, CompressionMode.STORAGE, 8)
write("mcap_file_zstd", StoragePlugin.MCAP, CompressionMode.FILE, 9)
write("mcap_message_zstd", StoragePlugin.MCAP, CompressionMode.MESSAGE, 8)
write("sqlite3", StoragePlugin.SQLITE3, CompressionMode.NONE, 8)
write("sqlite3_file_zstd", StoragePlugin.SQLITE3, CompressionMode.FILE, 9)
write("sqlite3_message_zstd", StoragePlugin.SQLITE3, CompressionMode.MESSAGE, 9)
