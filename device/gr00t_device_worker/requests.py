"""What the client asks for, as types."""

from dataclasses import dataclass
from typing import Annotated, Literal

from .decode import Range, decode
from .limits import MAX_SAFE, MAX_STAGING_BYTES, MAX_U32, STAGING_ALIGNMENT
from .program import U32, Name, Program, Rectangle
from .refusal import Refusal

Size = Annotated[int, Range(0, MAX_SAFE)]
Positive = Annotated[int, Range(1, MAX_U32)]


@dataclass(frozen=True, slots=True)
class StagingPart:
    """A part of the staging memory."""

    offset: Annotated[int, Range(0, MAX_STAGING_BYTES)]
    bytes: Annotated[int, Range(1, MAX_STAGING_BYTES)]


@dataclass(frozen=True, slots=True)
class Open:
    """How the card is opened, and what the client expects of the worker."""

    protocol: int
    worker: str
    tt_metal: str
    device_id: U32
    worker_l1_size: U32 | None
    l1_small_size: U32
    trace_region_size: Size
    queues: Literal[1, 2]
    staging_bytes: Annotated[int, Range(STAGING_ALIGNMENT, MAX_STAGING_BYTES)]
    cache_dir: str | None


@dataclass(frozen=True, slots=True)
class Dram:
    """Pages that are interleaved over the banks."""

    kind: Literal["dram"]
    page_bytes: Positive
    pages: Positive


@dataclass(frozen=True, slots=True)
class L1:
    """Bytes at the same address in the L1 of each core."""

    kind: Literal["l1"]
    bytes_per_core: Positive
    cores: Rectangle


@dataclass(frozen=True, slots=True)
class Allocate:
    """Memory of the card."""

    name: Name
    place: Dram | L1


@dataclass(frozen=True, slots=True)
class Transfer:
    """Between a buffer and the staging memory."""

    buffer: U32
    offset: Size
    staging: StagingPart


@dataclass(frozen=True, slots=True)
class Upload(Transfer):
    """Staging memory to a buffer."""


@dataclass(frozen=True, slots=True)
class Build:
    """A program."""

    program: Program


@dataclass(frozen=True, slots=True)
class Run:
    """Programs, one after the other."""

    programs: Annotated[list[U32], Range(1, 65536)]


@dataclass(frozen=True, slots=True)
class BeginCapture:
    """Record programs from now on."""


@dataclass(frozen=True, slots=True)
class EndCapture:
    """Make a trace of what was recorded."""


@dataclass(frozen=True, slots=True)
class WriteInputs:
    """Staging memory to buffers, on queue 1."""

    writes: Annotated[list[Transfer], Range(1, 256)]


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace, after an event."""

    trace: U32
    after: Size | None


@dataclass(frozen=True, slots=True)
class Read(Transfer):
    """A buffer to staging memory."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """State of the card."""


@dataclass(frozen=True, slots=True)
class Close:
    """The end."""


Request = (
    Open
    | Allocate
    | Upload
    | Build
    | Run
    | BeginCapture
    | EndCapture
    | WriteInputs
    | Replay
    | Read
    | Telemetry
    | Close
)

_KINDS: dict[str, type[Request]] = {
    "open": Open,
    "allocate": Allocate,
    "upload": Upload,
    "build": Build,
    "run": Run,
    "begin_capture": BeginCapture,
    "end_capture": EndCapture,
    "write_inputs": WriteInputs,
    "replay": Replay,
    "read": Read,
    "telemetry": Telemetry,
    "close": Close,
}


def name_of(kind: type[Request]) -> str:
    """As it stands in frames."""
    return next(name for name, of in _KINDS.items() if of is kind)


def parse(message: dict[str, object]) -> Request:
    """The request in a message; its `id` has been looked at."""
    fields = {name: value for name, value in message.items() if name not in ("id", "request")}
    name = message.get("request")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Refusal("argument", f"there is no request {name!r}")
    return decode(kind, fields, str(name))
