"""Frames on the socket: four bytes of length, then JSON."""

import array
import json
import socket

from .limits import MAX_FRAME_BYTES

_HEAD_BYTES = 4
_MOST_DESCRIPTORS = 3


class BadFrame(Exception):
    """What has come is no frame of the protocol."""


class FrameSocket:
    """The client's end of the line. Keeps the descriptors that came with the last frame."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.descriptors: list[int] = []

    def send(self, message: dict[str, object]) -> None:
        """Writes a frame."""
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        if len(body) > MAX_FRAME_BYTES:
            raise BadFrame(f"a reply of {len(body)} bytes; a frame has at most {MAX_FRAME_BYTES}")
        self._socket.sendall(len(body).to_bytes(_HEAD_BYTES, "little") + body)

    def receive(self) -> dict[str, object] | None:
        """The next frame; `None` where the socket ends between two."""
        self.descriptors = []
        head = self._read(_HEAD_BYTES)
        if not head:
            return None
        length = int.from_bytes(head, "little")
        if len(head) < _HEAD_BYTES or not 1 <= length <= MAX_FRAME_BYTES:
            raise BadFrame(f"it begins with {head!r}; a frame has 1 to {MAX_FRAME_BYTES} bytes")
        body = self._read(length)
        if len(body) < length:
            raise BadFrame(f"it ends after {len(body)} of {length} bytes")
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadFrame(f"its body is no JSON: {error}") from error
        if not isinstance(message, dict):
            raise BadFrame("its body is no JSON object")
        return message

    def _read(self, count: int) -> bytes:
        """As many bytes, or fewer where the socket ends."""
        data = bytearray()
        while len(data) < count:
            more, control, _, _ = self._socket.recvmsg(
                min(count - len(data), 1 << 16),
                socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize),
                socket.MSG_CMSG_CLOEXEC,
            )
            self._take(control)
            if not more:
                break
            data += more
        return bytes(data)

    def _take(self, control: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors = array.array("i")
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
                self.descriptors.extend(descriptors)
