"""What tests have in common."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client

TESTS = Path(__file__).resolve().parent

# Another worker on a piece of memory that the same tests are run on, such as that of device/cpp.
OTHER_WORKER = "GR00T_DEVICE_MEMORY_WORKER"


@pytest.fixture
def client() -> Iterator[Client]:
    """A worker on a card that is a piece of memory; not opened."""
    other = os.environ.get(OTHER_WORKER)
    with Client([other] if other else [sys.executable, str(TESTS / "memory_worker.py")]) as client:
        yield client


@pytest.fixture
def card(client: Client) -> Client:
    """The same, opened."""
    client.open("memory", "1.2.3")
    return client
