"""A device for tests, whose worker can be told to fail: parameters and environment of a node that uses it."""

import json
import os
import sys
import tempfile
from pathlib import Path

from rig import parameters, synthetic_snapshot

WORKER = Path(__file__).resolve().parent / 'faulty_worker.py'

# Such a device is none of this machine's; each has a lock of its own.
FIRST_ID = 1000

# A simulator that the machine has is not meant.
ENVIRONMENT = {'TT_METAL_SIMULATOR': ''}


class FaultyDevice:
    """`number` sets it apart from those of tests that run beside this one."""

    def __init__(self, number):
        self.number = FIRST_ID + number

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix='gr00t_blackhole_device_')
        self.folder = Path(self._scratch.name)
        self.python = self.folder / 'python'
        self.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{WORKER}" "{self.folder}" "$@"\n')
        self.python.chmod(0o755)
        return self

    def __exit__(self, *_):
        self._scratch.cleanup()

    def parameters(self, **changes):
        """Of a node on this device. It computes nothing, so no chunk is held to what the CPU computes."""
        device = {'backend': 'blackhole', 'device_id': self.number, 'device_python': str(self.python)}
        device |= {'cache_dir': str(self.folder / 'cache'), 'fidelity_gate': False}
        return parameters(synthetic_snapshot('tiny'), **(device | changes))

    def fail(self, request, how):
        """At the next request of this name, once."""
        partial = self.folder / 'fault.partial'
        partial.write_text(json.dumps({'request': request, 'how': how}))
        os.replace(partial, self.folder / 'fault')

    def has_failed(self):
        return not (self.folder / 'fault').exists()

    def claim(self, version):
        """The version of tt-metal that workers say they have, from now on; `None` for the right one."""
        path = self.folder / 'tt_metal'
        if version is None:
            path.unlink()
        else:
            path.write_text(version)
