"""Which requests are accepted when."""

import enum

from . import requests as r
from .refusal import Refusal


class State(enum.Enum):
    """Of a session."""

    NEW = "new"
    BUILDING = "building"
    CAPTURING = "capturing"
    CAPTURED = "captured"


_ALLOCATING: tuple[type, ...] = (r.Allocate, r.Upload, r.Build)
_ACCEPTED: dict[State, tuple[type, ...]] = {
    State.NEW: (r.Open, r.Close),
    State.BUILDING: (
        *_ALLOCATING,
        r.Run,
        r.BeginCapture,
        r.WriteInputs,
        r.Read,
        r.Telemetry,
        r.Close,
    ),
    State.CAPTURING: (r.Run, r.EndCapture, r.Telemetry, r.Close),
    State.CAPTURED: (
        r.Run,
        r.BeginCapture,
        r.WriteInputs,
        r.Replay,
        r.Read,
        r.Telemetry,
        r.Close,
    ),
}


def check(state: State, request: r.Request) -> None:
    """Refuses a request that is out of turn."""
    kind = type(request)
    if kind in _ACCEPTED[state]:
        return
    name = kind.__name__
    if kind in _ALLOCATING and state in (State.CAPTURING, State.CAPTURED):
        message = f"{name} after a capture has begun: allocate, upload and build all before the first one"
        raise Refusal("captured", message)
    accepted = ", ".join(sorted(kind.__name__ for kind in _ACCEPTED[state]))
    raise Refusal("state", f"{name} in state '{state.value}', which accepts {accepted}")
