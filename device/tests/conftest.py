"""What tests have in common."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client

TESTS = Path(__file__).resolve().parent


@pytest.fixture
def client() -> Iterator[Client]:
    """A worker on a card that is a piece of memory; not opened."""
    with Client([sys.executable, str(TESTS / "memory_worker.py")]) as client:
        yield client


@pytest.fixture
def card(client: Client) -> Client:
    """The same, opened."""
    client.open("memory", "1.2.3")
    return client
