"""Talks to a policy server as GR00T's clients of three generations do: `python clients.py HOST PORT`.

The server predicts for one camera `ego_view`, the state groups `left_arm` (3) and `gripper` (1) and a horizon of 2.
"""

import io
import json
import os
import sys
import threading

import msgpack
import numpy as np
import zmq

LANGUAGE = "annotation.human.action.task_description"
EXPECTED = {"left_arm": np.arange(6, dtype=np.float32).reshape(1, 2, 3) / 4, "gripper": np.float32([[[1.5], [1.75]]])}


class Npy:
    """As the clients of N1.5 and N1.6 write arrays."""

    @staticmethod
    def encode(item):
        if isinstance(item, np.ndarray):
            file = io.BytesIO()
            np.save(file, item, allow_pickle=False)
            return {"__ndarray_class__": True, "as_npy": file.getvalue()}
        return item

    @staticmethod
    def decode(item):
        if "__ModalityConfig_class__" in item:
            config = item["as_json"]
            return json.loads(config) if isinstance(config, str) else config
        if "__ndarray_class__" in item:
            return np.load(io.BytesIO(item["as_npy"]), allow_pickle=False)
        return item


class Numpy:
    """As the later clients of N1.7 write arrays."""

    @staticmethod
    def encode(item):
        import msgpack_numpy

        return msgpack_numpy.encode(item)

    @staticmethod
    def decode(item):
        import msgpack_numpy

        return item["as_json"] if "__ModalityConfig__" in item else msgpack_numpy.decode(item)


class Client:
    def __init__(self, address, codec):
        self.codec = codec
        self.socket = zmq.Context.instance().socket(zmq.REQ)
        self.socket.setsockopt(zmq.RCVTIMEO, 60_000)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(address)

    def call(self, endpoint, data=None):
        request = {"endpoint": endpoint}
        if data is not None:
            request["data"] = data
        self.socket.send(msgpack.packb(request, default=self.codec.encode))
        answer = msgpack.unpackb(self.socket.recv(), object_hook=self.codec.decode)
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def flat(batch, dtype):
    return {
        "video.ego_view": np.random.randint(0, 256, (*batch, 1, 480, 640, 3), dtype=np.uint8),
        "state.left_arm": np.zeros((*batch, 1, 3), dtype),
        "state.gripper": np.zeros((*batch, 1, 1), dtype),
        LANGUAGE: ["pick the pear"],
    }


def nested():
    observation = flat((1,), np.float32)
    return {
        "video": {"ego_view": observation["video.ego_view"]},
        "state": {name: observation[f"state.{name}"] for name in ("left_arm", "gripper")},
        "language": {LANGUAGE: [["pick the pear"]]},
    }


def same(found, expected):
    assert found.dtype == np.float32 and found.shape == expected.shape, (found.dtype, found.shape)
    assert np.array_equal(found, expected)


def check_n15(address):
    client = Client(address, Npy)
    assert client.call("ping")["status"] == "ok"
    action = client.call("get_action", flat((), np.float64))
    same(action["action.left_arm"], EXPECTED["left_arm"][0])
    same(action["action.gripper"], EXPECTED["gripper"].squeeze())
    action = client.call("get_action", flat((1,), np.float64))
    same(action["action.gripper"], EXPECTED["gripper"])


def check_later(address, codec):
    client = Client(address, codec)
    assert client.call("ping") == {"status": "ok", "message": "Server is running"}
    configs = client.call("get_modality_config")
    assert configs["video"]["modality_keys"] == ["ego_view"] and configs["video"]["delta_indices"] == [0]
    assert configs["action"]["delta_indices"] == [0, 1]
    for observation, prefix in ((nested(), ""), (flat((1,), np.float32), "action.")):
        action, info = client.call("get_action", {"observation": observation, "options": None})
        assert info == {} and list(action) == [prefix + name for name in EXPECTED]
        for name, expected in EXPECTED.items():
            same(action[prefix + name], expected)
    assert client.call("reset", {"options": None}) == {}
    for data, words in (({"observation": {}, "options": None}, "no observation"), (None, "no observation")):
        try:
            client.call("get_action", data)
        except RuntimeError as error:
            assert words in str(error), error
        else:
            raise AssertionError("no error")
    # And goes on after an error.
    assert client.call("ping")["status"] == "ok"


def check_vanishing(address):
    """A client whose socket is closed in mid-request, and one that sends garbage; then others."""
    client = Client(address, Npy)
    client.socket.send(msgpack.packb({"endpoint": "get_action", "data": nested()}, default=Npy.encode))
    client.socket.close()
    client = Client(address, Npy)
    client.socket.send(os.urandom(1000))
    assert "error" in msgpack.unpackb(client.socket.recv())
    client.socket.send_multipart([msgpack.packb({"endpoint": "ping"}), b"more"])
    assert msgpack.unpackb(client.socket.recv())["status"] == "ok"
    assert client.call("ping")["status"] == "ok"


def check_heartbeats(address):
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 50)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 500)
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    socket.connect(address)
    for _ in range(3):
        socket.send(msgpack.packb({"endpoint": "ping"}))
        assert msgpack.unpackb(socket.recv())["status"] == "ok"
        threading.Event().wait(0.3)


def side_by_side(address):
    failures = []

    def work(codec):
        try:
            for _ in range(5):
                check_later(address, codec)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(codec,)) for codec in (Npy, Numpy, Npy)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures


def main(host, port):
    address = f"tcp://{host}:{port}"
    checks = {
        "n15": lambda: check_n15(address),
        "n16": lambda: check_later(address, Npy),
        "n17": lambda: check_later(address, Numpy),
        "vanishing": lambda: check_vanishing(address),
        "heartbeats": lambda: check_heartbeats(address),
        "side_by_side": lambda: side_by_side(address),
    }
    for name, check in checks.items():
        check()
        print(f"passed: {name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
