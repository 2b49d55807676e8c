"""The device worker on a card that is a piece of memory and computes nothing, with faults when a test asks for them.

    faulty_worker.py FOLDER -m gr00t_device_worker --socket PATH

The node starts it in place of a Python with tt-metal, and has its own copy of the worker's package on PYTHONPATH. A file
`fault` in FOLDER, such as `{"request": "replay", "how": "kill"}`, is obeyed once, at the next request of that name. A file
`tt_metal` holds the version that the worker claims; without one it is the right one.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / 'device/tests'))

import memory_backend
from gr00t_device_worker import pin, serve
from gr00t_device_worker.frame import FrameSocket
from gr00t_device_worker.session import Identity

FOLDER, SOCKET = Path(sys.argv[1]), sys.argv[sys.argv.index('--socket') + 1]

# Room for the weights of a tiny network, and for all that is L1 on a card.
memory_backend.DRAM_BYTES = 1 << 30

# So long is for ever.
FOR_EVER_S = 1000
SLOWLY_S = 3


class Card(memory_backend.MemoryBackend):
    """Programs do nothing; what is read from the card is what was written there, or zero."""

    def build(self, program):
        return memory_backend.Copy(0, 0, 0)


class FaultySocket(FrameSocket):
    """Looks for a fault behind every request."""

    def receive(self):
        message = super().receive()
        if message is not None:
            self._misbehave(message['request'])
        return message

    def _misbehave(self, request):
        path = FOLDER / 'fault'
        try:
            fault = json.loads(path.read_text())
        except FileNotFoundError:
            return
        if fault['request'] != request:
            return
        path.unlink()
        print(f'last words before {request}', file=sys.stderr, flush=True)
        match fault['how']:
            case 'kill':
                os.kill(os.getpid(), signal.SIGKILL)
            case 'hang':
                time.sleep(FOR_EVER_S)
            case 'garbage':
                self._socket.sendall(b'terminate called after throwing an instance')
                time.sleep(FOR_EVER_S)
            case 'slow':
                time.sleep(SLOWLY_S)


def version():
    path = FOLDER / 'tt_metal'
    return path.read_text() if path.exists() else pin.TTNN


serve.FrameSocket = FaultySocket
sys.exit(serve.serve(SOCKET, Identity(pin.WORKER, version()), Card))
