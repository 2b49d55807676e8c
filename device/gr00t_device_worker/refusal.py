"""The worker's "no"."""

from typing import Literal

from .limits import MAX_MESSAGE_CHARACTERS

Code = Literal[
    "version",
    "cache",
    "open",
    "state",
    "captured",
    "not_warm",
    "unknown",
    "argument",
    "memory",
    "kernel",
    "unsupported",
    "device",
]


class Refusal(Exception):
    """Ends a request, not the session; but for `device`."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = shortened(message)


def shortened(text: str) -> str:
    """Begin and end of a text: an error of tt-metal names its cause first, one of a compiler last."""
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    half = MAX_MESSAGE_CHARACTERS // 2 - 3
    return f"{text[:half]} [...] {text[-half:]}"
