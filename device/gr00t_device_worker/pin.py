"""The one version of ttnn that this worker was written for and tested with."""

import importlib.metadata

WORKER = "ttnn-wheel"
TTNN = "0.81.1"


def installed() -> str:
    """Version of ttnn in this Python; empty if there is none. Does not load it."""
    try:
        return importlib.metadata.version("ttnn")
    except importlib.metadata.PackageNotFoundError:
        return ""
