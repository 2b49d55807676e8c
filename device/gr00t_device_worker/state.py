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


_ALLOCATING: tuple[type[r.Request], ...] = (r.Allocate, r.Upload, r.Build)
_ACCEPTED: dict[State, tuple[type[r.Request], ...]] = {
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
    name = r.name_of(kind)
    if kind in _ALLOCATING and state in (State.CAPTURING, State.CAPTURED):
        message = f"{name} after a capture has begun: allocate, upload and build all before the first one"
        raise Refusal("captured", message)
    accepted = ", ".join(map(r.name_of, _ACCEPTED[state]))
    raise Refusal("state", f"{name} in state '{state.value}', which accepts {accepted}")
