"""How a worker ends: with its line, with its client, with its card, with garbage."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from client import Client, Refused, kernel, program
from memory_backend import FAIL


def test_the_end_of_the_line_ends_the_worker(card: Client) -> None:
    """Between two requests."""
    card.socket.close()
    assert card.process.wait(5) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\2\0\0\0[]",
        b"\1\0\0\0{",
        b'\x08\0\0\0{"id":0}',
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xfe",
    ],
)
def test_garbage_ends_the_worker(card: Client, data: bytes) -> None:
    """With its own status; half a frame counts when the line ends."""
    card.send_bytes(data)
    card.socket.shutdown(1)
    assert card.process.wait(5) == 4


def test_a_card_that_fails_ends_the_worker(card: Client) -> None:
    """The reply says why, the status that it is so."""
    with pytest.raises(Refused) as caught:
        card.call("build", program(kernel(Path(__file__), [FAIL, 0, 0])))
    assert caught.value.code == "device"
    assert caught.value.message.endswith("TT_FATAL: the card does not answer")
    assert card.process.wait(5) == 3


def test_the_lifeline_ends_a_worker_that_does_not_listen(card: Client) -> None:
    """It is stopped, as in a call that never returns: the kernel ends it when it may go on."""
    os.kill(card.process.pid, signal.SIGSTOP)
    os.close(card.life_write)
    card.life_write = os.dup(card.life_read)
    time.sleep(0.1)
    os.kill(card.process.pid, signal.SIGCONT)
    assert card.process.wait(5) == -signal.SIGIO


def test_open_needs_its_descriptors(client: Client) -> None:
    """All three of them."""
    fields: dict[str, object] = {"protocol": 1, "worker": "memory", "tt_metal": "1.2.3"}
    fields |= {"device_id": 0, "worker_l1_size": None, "l1_small_size": 0, "trace_region_size": 0}
    fields |= {"queues": 1, "staging_bytes": 4096, "cache_dir": None}
    with pytest.raises(Refused) as caught:
        client.call("open", fields, (client.staging,))
    assert "1 descriptors" in caught.value.message


def test_staging_memory_has_the_size_that_open_says(client: Client) -> None:
    """Otherwise an access would be a bus error."""
    with pytest.raises(Refused) as caught:
        client.open("memory", "1.2.3", staging_bytes=2 << 20)
    assert "staging memory has 1048576 bytes" in caught.value.message


def test_the_command_line_is_checked() -> None:
    """A socket that is not there, with its name."""
    status = os.spawnlp(
        os.P_WAIT, sys.executable, sys.executable, "-m", "gr00t_device_worker", "--socket", "/nowhere"
    )
    assert status == 2
