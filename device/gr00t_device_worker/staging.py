"""Memory that is shared with the client."""

import mmap
import os

from .refusal import Refusal
from .requests import StagingPart


class Staging:
    """The mapped staging memory."""

    def __init__(self, descriptor: int, size: int) -> None:
        found = os.fstat(descriptor).st_size
        if found != size:
            raise Refusal("argument", f"the staging memory has {found} bytes, 'open' says {size}")
        self.bytes = size
        self._view = memoryview(mmap.mmap(descriptor, size))

    def part(self, part: StagingPart, path: str) -> memoryview:
        """These bytes of it, to read and write."""
        end = part.offset + part.bytes
        if end > self.bytes:
            raise Refusal("argument", f"{path} ends at {end}; the staging memory has {self.bytes} bytes")
        return self._view[part.offset : end]
