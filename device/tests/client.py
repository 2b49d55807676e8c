"""A small client for the tests of the worker: frames, descriptors, staging memory."""

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

STAGING_BYTES = 1 << 20


class Refused(Exception):
    """A reply with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Client:
    """One worker and the line to it."""

    def __init__(
        self, command: Sequence[str], environment: dict[str, str] | None = None, timeout: float = 20
    ) -> None:
        self._dir = tempfile.TemporaryDirectory()
        path = str(Path(self._dir.name) / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(timeout)
            self.process = subprocess.Popen(
                [*command, "--socket", path],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
            )
            self.socket, _ = listener.accept()
        self.socket.settimeout(timeout)
        self._id = 0
        self.card: dict[str, object] = {}
        self.staging = os.memfd_create("staging")
        os.ftruncate(self.staging, STAGING_BYTES)
        self.lock = os.open(self._dir.name, os.O_RDONLY)
        self.life_read, self.life_write = os.pipe()
        self.hello = self.receive(0)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()
        self.process.kill()
        self.process.wait()
        for descriptor in (self.staging, self.lock, self.life_read, self.life_write):
            os.close(descriptor)
        self._dir.cleanup()

    def send_bytes(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Whatever these are."""
        socket.send_fds(self.socket, [data], list(descriptors))

    def receive(self, number: int) -> dict[str, object]:
        """The fields of the reply with this number."""
        size = int.from_bytes(self._exactly(4), "little")
        reply = json.loads(self._exactly(size))
        assert reply["id"] == number
        if "error" in reply:
            raise Refused(reply["error"]["code"], reply["error"]["message"])
        fields = reply["ok"]
        assert isinstance(fields, dict)
        return fields

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("the worker has ended the line")
            data += more
        return data

    def call(
        self, request: str, fields: dict[str, object] | None = None, descriptors: Sequence[int] = ()
    ) -> dict[str, object]:
        """Sends a request, returns the fields of its reply."""
        self._id += 1
        body = json.dumps({"id": self._id, "request": request, **(fields or {})}).encode()
        self.send_bytes(len(body).to_bytes(4, "little") + body, descriptors)
        return self.receive(self._id)

    def open(self, worker: str, tt_metal: str, /, **changes: object) -> dict[str, object]:
        """Opens the card with usual settings."""
        fields: dict[str, object] = {
            "protocol": 1,
            "worker": worker,
            "tt_metal": tt_metal,
            "device_id": 0,
            "worker_l1_size": None,
            "l1_small_size": 0,
            "trace_region_size": 8 << 20,
            "queues": 2,
            "staging_bytes": STAGING_BYTES,
            "cache_dir": None,
        }
        return self.call("open", fields | changes, (self.staging, self.lock, self.life_read))

    def dram(self, name: str, page_bytes: int, pages: int) -> dict[str, int]:
        """Allocates an interleaved buffer."""
        place = {"kind": "dram", "page_bytes": page_bytes, "pages": pages}
        reply = self.call("allocate", {"name": name, "place": place})
        return {name: value for name, value in reply.items() if isinstance(value, int)}

    def put(self, request: str, buffer: int, data: bytes, offset: int = 0) -> dict[str, object]:
        """Writes to a buffer by `upload` or `write_inputs`."""
        os.pwrite(self.staging, data, 0)
        write = {"buffer": buffer, "offset": offset, "staging": {"offset": 0, "bytes": len(data)}}
        return self.call(request, {"writes": [write]} if request == "write_inputs" else write)

    def get(self, buffer: int, count: int, offset: int = 0) -> bytes:
        """Reads from a buffer."""
        part = {"offset": 0, "bytes": count}
        self.call("read", {"buffer": buffer, "offset": offset, "staging": part})
        return os.pread(self.staging, count, 0)


def kernel(source: Path, args: list[int], /, **changes: object) -> dict[str, object]:
    """A data movement kernel on core (0, 0)."""
    fields: dict[str, object] = {
        "source": str(source),
        "processor": "brisc",
        "cores": [{"start": [0, 0], "end": [0, 0]}],
        "compile_time_args": [],
        "defines": [],
        "include_dirs": [],
        "common_runtime_args": [],
        "runtime_args": [{"core": [0, 0], "args": args}],
        "compute": None,
    }
    return fields | changes


def program(*kernels: dict[str, object], **changes: object) -> dict[str, object]:
    """The fields of `build`."""
    fields: dict[str, object] = {
        "name": "copy",
        "kernels": list(kernels),
        "circular_buffers": [],
        "semaphores": [],
    }
    return {"program": fields | changes}
