"""The directory for compiled kernels."""

import os
import tempfile

from .refusal import Refusal

VARIABLE = "TT_METAL_CACHE"


def use(directory: str | None) -> None:
    """Makes tt-metal use this directory, which has to be writable; `None` leaves it with its own.

    It becomes the working directory too: tt-metal writes logs to a folder `generated` there.
    """
    if directory is None:
        return
    try:
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
        os.chdir(directory)
    except OSError as error:
        message = f"compiled kernels cannot be kept in {directory!r}: {error.strerror}; name a writable directory"
        raise Refusal("cache", message) from error
    os.environ[VARIABLE] = os.getcwd()
