"""A whole worker on a card that is a piece of memory: what the tests of the client run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gr00t_device_worker.serve import serve  # noqa: E402
from gr00t_device_worker.session import Identity  # noqa: E402
from memory_backend import MemoryBackend  # noqa: E402

if __name__ == "__main__":
    sys.exit(serve(sys.argv[sys.argv.index("--socket") + 1], Identity("memory", "1.2.3"), MemoryBackend))
