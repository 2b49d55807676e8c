"""One client's session: obeys requests in their turn."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import cache, checks, lifeline
from . import requests as r
from .backend import Backend, Card, Memory
from .limits import PROTOCOL
from .refusal import Refusal
from .staging import Staging
from .state import State, check
from .table import Table

_DESCRIPTORS = 3


@dataclass(frozen=True, slots=True)
class Identity:
    """What `hello` tells."""

    worker: str
    tt_metal: str


@dataclass(slots=True)
class Buffer:
    """A buffer and its name."""

    label: str
    memory: Memory


@dataclass(slots=True)
class Built:
    """A program, and whether it has run: its kernels are compiled and lie on the card."""

    name: str
    handle: Any
    is_warm: bool = False


class Session:
    """State of the session, and what was made in it."""

    def __init__(self, identity: Identity, make_backend: Callable[[], Backend]) -> None:
        self._identity = identity
        self._make_backend = make_backend
        self._state = State.NEW
        self._buffers: Table[Buffer] = Table("buffer")
        self._programs: Table[Built] = Table("program")
        self._traces: Table[Any] = Table("trace")
        self._event: tuple[int, Any] = (0, None)
        # Whether queue 1 may still be writing.
        self._is_writing = False
        self._captured = False
        self.is_over = False

    def obey(self, request: r.Request, descriptors: list[int]) -> dict[str, object]:
        """The fields of the reply."""
        check(self._state, request)
        match request:
            case r.Open():
                return self._open(request, descriptors)
            case r.Allocate():
                return self._allocate(request)
            case r.Upload():
                return self._upload(request)
            case r.Build():
                return self._build(request)
            case r.Run():
                return self._run(request)
            case r.BeginCapture():
                return self._begin_capture()
            case r.EndCapture():
                return self._end_capture()
            case r.WriteInputs():
                return self._write_inputs(request)
            case r.Replay():
                return self._replay(request)
            case r.Read():
                return self._read(request)
            case r.Telemetry():
                return self._telemetry()
            case r.Close():
                return self._close()

    def leave(self) -> None:
        """Closes the card, if it is open."""
        if self._state is not State.NEW:
            self._state = State.NEW
            self._backend.close()

    def _open(self, request: r.Open, descriptors: list[int]) -> dict[str, object]:
        expected = (request.protocol, request.worker, request.tt_metal)
        found = (PROTOCOL, self._identity.worker, self._identity.tt_metal)
        if expected != found:
            raise Refusal("version", f"the client wants {expected}, this worker is {found}")
        if len(descriptors) != _DESCRIPTORS:
            message = f"'open' came with {len(descriptors)} descriptors; it has to have {_DESCRIPTORS}"
            raise Refusal("argument", message)
        # The lock of the card is only kept.
        staging, _lock, life = descriptors
        lifeline.arm(life)
        self._staging = Staging(staging, request.staging_bytes)
        cache.use(request.cache_dir)
        self._queues = request.queues
        try:
            self._backend = self._make_backend()
            self._card: Card = self._backend.open(request)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("open", f"device {request.device_id} cannot be opened: {error}") from error
        self._state = State.BUILDING
        return self._card.reply()

    def _allocate(self, request: r.Allocate) -> dict[str, object]:
        checks.place(request.place, self._card)
        memory = self._backend.allocate(request.name, request.place)
        number = self._buffers.add(Buffer(f"buffer '{request.name}'", memory))
        return {
            "buffer": number,
            "address": memory.address,
            "bytes": memory.bytes,
            "granule": memory.granule,
        }

    def _upload(self, request: r.Upload) -> dict[str, object]:
        self._write(request, 0)
        return {}

    def _write(self, request: r.Transfer, queue: int) -> None:
        buffer, data = self._transfer(request)
        self._backend.write(buffer.memory, request.offset, data, queue)

    def _transfer(self, request: r.Transfer) -> tuple[Buffer, memoryview]:
        buffer = self._buffers.get(request.buffer)
        data = self._staging.part(request.staging, "staging")
        checks.part(buffer.memory, buffer.label, request.offset, len(data))
        return buffer, data

    def _build(self, request: r.Build) -> dict[str, object]:
        checks.program(request.program, self._card)
        handle = self._backend.build(request.program)
        return {"program": self._programs.add(Built(request.program.name, handle))}

    def _run(self, request: r.Run) -> dict[str, object]:
        programs = [self._programs.get(number) for number in request.programs]
        cold = next((program for program in programs if not program.is_warm), None)
        if self._captured and cold is not None:
            message = f"program '{cold.name}' has not run before the first capture; run it once before"
            raise Refusal("not_warm", message)
        if self._is_writing and self._state is not State.CAPTURING:
            self._backend.wait()
            self._is_writing = False
        begin = time.monotonic_ns()
        for program in programs:
            self._backend.enqueue(program.handle)
        if self._state is not State.CAPTURING:
            self._backend.wait()
        for program in programs:
            program.is_warm = True
        return {"nanoseconds": time.monotonic_ns() - begin}

    def _begin_capture(self) -> dict[str, object]:
        self._captured = True
        self._backend.begin_capture()
        self._state = State.CAPTURING
        return {}

    def _end_capture(self) -> dict[str, object]:
        trace = self._backend.end_capture()
        self._state = State.CAPTURED
        return {"trace": self._traces.add(trace)}

    def _write_inputs(self, request: r.WriteInputs) -> dict[str, object]:
        if self._queues < 2:
            raise Refusal("argument", "write_inputs needs queue 1; open the device with 2 queues")
        for write in request.writes:
            self._transfer(write)
        for write in request.writes:
            self._write(write, 1)
        number = self._event[0] + 1
        self._event = (number, self._backend.record_event())
        self._is_writing = True
        return {"event": number}

    def _replay(self, request: r.Replay) -> dict[str, object]:
        trace = self._traces.get(request.trace)
        newest, event = self._event
        if request.after is not None and (request.after != newest or event is None):
            message = f"event {request.after} is not the newest one, which is {newest}"
            raise Refusal("unknown", message)
        begin = time.monotonic_ns()
        self._backend.replay(trace, None if request.after is None else event)
        return {"nanoseconds": time.monotonic_ns() - begin}

    def _read(self, request: r.Read) -> dict[str, object]:
        buffer, data = self._transfer(request)
        # What was written on queue 1 stands in no order with queue 0.
        self._backend.wait()
        self._backend.read(buffer.memory, request.offset, data)
        return {}

    def _telemetry(self) -> dict[str, object]:
        return {
            "buffers": len(self._buffers),
            "programs": len(self._programs),
            "traces": len(self._traces),
            **self._backend.telemetry(),
        }

    def _close(self) -> dict[str, object]:
        self.leave()
        self.is_over = True
        return {}
