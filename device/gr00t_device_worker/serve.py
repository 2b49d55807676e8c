"""The line to the client: a reply to each request, until the end."""

import os
import socket
import sys
import traceback
from collections.abc import Callable

from .backend import Backend
from .frame import BadFrame, FrameSocket
from .limits import PROTOCOL
from .refusal import Refusal
from .requests import parse
from .session import Identity, Session

EXIT_DEVICE = 3
EXIT_FRAME = 4


def serve(path: str, identity: Identity, make_backend: Callable[[], Backend]) -> int:
    """Serves the client that listens at `path`; the exit status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        session = Session(identity, make_backend)
        try:
            return _requests(FrameSocket(connection), identity, session)
        except BadFrame as error:
            print(f"this is no frame of the protocol: {error}", file=sys.stderr)
            session.leave()
            return EXIT_FRAME
        except (BrokenPipeError, ConnectionResetError):
            session.leave()
            return 0


def _requests(line: FrameSocket, identity: Identity, session: Session) -> int:
    hello: dict[str, object] = {
        "protocol": PROTOCOL,
        "worker": identity.worker,
        "tt_metal": identity.tt_metal,
        "pid": os.getpid(),
    }
    line.send({"id": 0, "ok": hello})
    while not session.is_over:
        message = line.receive()
        if message is None:
            session.leave()
            return 0
        number = message.get("id")
        if type(number) is not int or number < 1:
            raise BadFrame(f"its id is {number!r}")
        reply, failed = _answer(session, message, line.descriptors)
        line.send({"id": number, **reply})
        if failed:
            return EXIT_DEVICE
    return 0


def _answer(
    session: Session, message: dict[str, object], descriptors: list[int]
) -> tuple[dict[str, object], bool]:
    """The reply, and whether the card has failed."""
    try:
        return {"ok": session.obey(parse(message), descriptors)}, False
    except Refusal as refusal:
        return _refused(refusal), refusal.code == "device"
    except Exception as error:
        traceback.print_exc()
        return _refused(Refusal("device", f"{type(error).__name__}: {error}")), True


def _refused(refusal: Refusal) -> dict[str, object]:
    return {"error": {"code": refusal.code, "message": refusal.message}}
