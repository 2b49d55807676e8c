"""Command line: `python -m gr00t_device_worker --socket PATH`."""

import argparse
import os
import sys

from . import pin
from .backend import Backend
from .refusal import Refusal
from .serve import serve
from .session import Identity


def _wheel() -> Backend:
    if (found := pin.installed()) != pin.TTNN:
        message = f"ttnn is {found or 'not installed'}, this worker runs on {pin.TTNN} only"
        raise Refusal("version", f"{message}; install device/requirements.txt")
    # Loads tt-metal, which takes seconds and reads its settings from the environment.
    from .wheel import WheelBackend

    return WheelBackend()


def main() -> int:
    """Serves one client; the exit status."""
    parser = argparse.ArgumentParser(prog="gr00t_device_worker", description=__doc__)
    parser.add_argument("--socket", required=True, metavar="PATH", help="where the client listens")
    path = parser.parse_args().socket
    try:
        return serve(path, Identity(pin.WORKER, pin.installed()), _wheel)
    except OSError as error:
        print(f"the client's socket {path!r} cannot be used: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # After a failure the destructors of tt-metal may wait for a card that does not answer.
    os._exit(status)
