"""A worker that misbehaves on purpose: `scripted_worker.py FAULT STAGE --socket PATH`.

It answers every request with the same words, until the request STAGE comes; `start` is before it connects, `hello` when it
has connected.
"""

import json
import os
import signal
import socket
import sys
import time

FAULT, STAGE, _, PATH = sys.argv[1:]

HELLO = {"protocol": 1, "worker": "scripted", "tt_metal": "1.2.3", "pid": os.getpid()}
NOTHING = dict.fromkeys(
    ("allocated_dram", "allocated_l1_per_core", "driver", "firmware", "temperature_c", "power_w", "clock_mhz")
)
REPLIES = {
    "open": {
        "arch": "blackhole",
        "grid": {"columns": 1, "rows": 1},
        "noc": [[1, 2]],
        "dram_banks": 8,
        "dram_alignment": 64,
        "l1_alignment": 16,
        "l1_bytes": 1024,
    },
    "allocate": {"buffer": 1, "address": 64, "bytes": 4096, "granule": 64},
    "build": {"program": 1},
    "run": {"nanoseconds": 1000},
    "end_capture": {"trace": 1},
    "write_inputs": {"event": 1},
    "replay": {"nanoseconds": 2000},
    "telemetry": {**NOTHING, "buffers": 1, "programs": 1, "traces": 1},
}


def frame(message: object) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "little") + body


def misbehave(line: socket.socket, number: int, reply: bytes) -> None:
    print(f"last words before {STAGE}", file=sys.stderr, flush=True)
    if FAULT == "exit":
        os._exit(7)
    if FAULT == "abort":
        os.abort()
    if FAULT == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # A child that would outlive it, and holds the pipe of its output open.
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")
        time.sleep(1000)
    if FAULT == "leave":
        line.shutdown(socket.SHUT_RDWR)
        time.sleep(1000)
    if FAULT == "device":
        line.sendall(frame({"id": number, "error": {"code": "device", "message": "the card is lost"}}))
        os._exit(3)
    if FAULT == "half":
        line.sendall(reply[:-1])
        time.sleep(1000)
    if FAULT == "cut":
        line.sendall(reply[:-1])
        os._exit(7)
    line.sendall(
        {
            "text": b"terminate called after throwing an instance",
            "empty": b"\0\0\0\0",
            "oversize": b"\1\0\x40\0",
            "not_json": frame({})[:4] + b"}{",
            "no_object": frame([1]),
            "wrong_id": frame({"id": number + 1, "ok": {}}),
            "both": frame({"id": number, "ok": {}, "error": {"code": "state", "message": ""}}),
            "neither": frame({"id": number}),
            "wrong_fields": frame({"id": number, "ok": {"surprise": 1}}),
            "unknown_code": frame({"id": number, "error": {"code": "whim", "message": ""}}),
            "bad_granule": frame({"id": number, "ok": {**REPLIES["allocate"], "granule": 0}}),
        }[FAULT]
    )
    time.sleep(1000)


def exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def main() -> None:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if STAGE == "start":
        misbehave(line, 0, b"")
    line.connect(PATH)
    hello = dict(HELLO)
    if FAULT in hello:
        hello[FAULT] = {"protocol": 2, "worker": "another", "tt_metal": "1.2.4"}[FAULT]
    reply = frame({"id": 0, "ok": hello})
    if STAGE == "hello" and FAULT not in hello:
        misbehave(line, 0, reply)
    line.sendall(reply)
    while True:
        message = json.loads(exactly(line, int.from_bytes(exactly(line, 4), "little")))
        name = message["request"]
        reply = frame({"id": message["id"], "ok": REPLIES.get(name, {})})
        if name == STAGE:
            misbehave(line, message["id"], reply)
        line.sendall(reply)
        if name == "close":
            return


main()
