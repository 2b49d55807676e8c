"""What a session accepts and refuses, over the real socket."""

from pathlib import Path

import pytest
from client import Client, Refused, kernel, program

SOURCE = Path(__file__)


def refusal(client: Client, request: str, fields: dict[str, object] | None = None) -> Refused:
    """The refusal of a request."""
    with pytest.raises(Refused) as caught:
        client.call(request, fields)
    return caught.value


def copying(client: Client) -> tuple[int, int, int]:
    """Two buffers and a program that copies the first to the second."""
    first, second = client.dram("first", 64, 16), client.dram("second", 64, 16)
    copy = kernel(SOURCE, [first["address"], second["address"], 1024])
    number = client.call("build", program(copy))["program"]
    assert isinstance(number, int)
    return first["buffer"], second["buffer"], number


def test_hello_says_who_it_is(client: Client) -> None:
    """The handshake."""
    assert client.hello["protocol"] == 1
    assert (client.hello["worker"], client.hello["tt_metal"]) == ("memory", "1.2.3")
    assert client.hello["pid"] == client.process.pid


@pytest.mark.parametrize(
    "changes", [{"protocol": 2}, {"worker": "metalium-cpp"}, {"tt_metal": "1.2.4"}]
)
def test_another_version_is_refused(client: Client, changes: dict[str, object]) -> None:
    """There are no ranges of versions; the session can still be opened rightly."""
    with pytest.raises(Refused) as caught:
        client.open("memory", "1.2.3", **changes)
    assert caught.value.code == "version"
    assert client.open("memory", "1.2.3")["dram_banks"] == 8


def test_open_tells_of_the_card(client: Client) -> None:
    """Grid and coordinates."""
    card = client.open("memory", "1.2.3")
    assert card["grid"] == {"columns": 11, "rows": 10}
    noc = card["noc"]
    assert isinstance(noc, list)
    assert (len(noc), noc[12]) == (110, [2, 3])


def test_case_87_a_cache_that_cannot_be_written_is_named(client: Client, tmp_path: Path) -> None:
    """A path below a file is writable for nobody."""
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "cache")
    with pytest.raises(Refused) as caught:
        client.open("memory", "1.2.3", cache_dir=path)
    assert caught.value.code == "cache" and path in caught.value.message


def test_the_cache_is_where_files_are_left(client: Client, tmp_path: Path) -> None:
    """It is made, and nothing is left where the client runs."""
    path = tmp_path / "new" / "cache"
    client.open("memory", "1.2.3", cache_dir=str(path))
    assert Path(f"/proc/{client.process.pid}/cwd").readlink() == path
    assert list(path.iterdir()) == []


def test_bytes_come_back(card: Client) -> None:
    """Whole, and a part."""
    buffer = card.dram("x", 64, 40)
    assert (buffer["bytes"], buffer["granule"]) == (2560, 1024)
    data = bytes(range(256)) * 10
    card.put("upload", buffer["buffer"], data)
    assert card.get(buffer["buffer"], 2560) == data
    card.put("upload", buffer["buffer"], b"\1" * 512, 2048)
    assert card.get(buffer["buffer"], 1536, 1024) == data[1024:2048] + b"\1" * 512


def test_traced_equals_untraced(card: Client) -> None:
    """Inputs on queue 1, a replay behind their event."""
    first, second, copy = copying(card)
    data = bytes(range(256)) * 4
    card.put("upload", first, data)
    card.call("run", {"programs": [copy]})
    untraced = card.get(second, 1024)
    card.call("begin_capture")
    card.call("run", {"programs": [copy]})
    trace = card.call("end_capture")["trace"]
    for value in (data[::-1], data):
        event = card.put("write_inputs", first, value)["event"]
        card.call("replay", {"trace": trace, "after": event})
        assert card.get(second, 1024) == value
    assert untraced == data


def test_case_24_nothing_is_allocated_after_a_capture(card: Client) -> None:
    """In the capture and behind it."""
    first, _, copy = copying(card)
    card.call("run", {"programs": [copy]})
    place = {"kind": "dram", "page_bytes": 64, "pages": 1}
    part = {"buffer": first, "offset": 0, "staging": {"offset": 0, "bytes": 1024}}
    refused: dict[str, dict[str, object]] = {
        "allocate": {"name": "late", "place": place},
        "upload": part,
        "build": program(kernel(SOURCE, [0, 0, 0])),
    }
    card.call("begin_capture")
    for request, fields in refused.items():
        assert refusal(card, request, fields).code == "captured"
    card.call("end_capture")
    for request, fields in refused.items():
        assert refusal(card, request, fields).code == "captured"
    card.call("begin_capture")
    card.call("end_capture")
    assert refusal(card, "allocate", refused["allocate"]).code == "captured"


def test_a_cold_program_is_not_captured(card: Client) -> None:
    """It would be compiled and allocated in the capture."""
    _, _, copy = copying(card)
    card.call("begin_capture")
    answer = refusal(card, "run", {"programs": [copy]})
    assert answer.code == "not_warm" and "'copy'" in answer.message


def test_requests_out_of_turn_are_refused(client: Client) -> None:
    """With what would be accepted."""
    answer = refusal(client, "telemetry")
    assert answer.code == "state" and "open" in answer.message
    client.open("memory", "1.2.3")
    assert refusal(client, "end_capture").code == "state"
    client.call("begin_capture")
    assert refusal(client, "read", _part(1)).code == "state"
    assert refusal(client, "begin_capture").code == "state"


def _part(buffer: int, offset: int = 0, count: int = 1024) -> dict[str, object]:
    return {"buffer": buffer, "offset": offset, "staging": {"offset": 0, "bytes": count}}


def test_unknown_numbers_are_refused(card: Client) -> None:
    """Buffers, programs, traces, events."""
    assert refusal(card, "read", _part(1)).code == "unknown"
    assert refusal(card, "run", {"programs": [3]}).code == "unknown"
    first, _, copy = copying(card)
    card.call("run", {"programs": [copy]})
    card.call("begin_capture")
    trace = card.call("end_capture")["trace"]
    assert refusal(card, "replay", {"trace": 2, "after": None}).code == "unknown"
    old = card.put("write_inputs", first, bytes(1024))["event"]
    card.put("write_inputs", first, bytes(1024))
    assert refusal(card, "replay", {"trace": trace, "after": old}).code == "unknown"


@pytest.mark.parametrize(
    ("offset", "count"), [(0, 2000), (64, 960), (0, 64), (1024, 1024), (1 << 40, 64)]
)
def test_parts_off_the_granules_are_refused(card: Client, offset: int, count: int) -> None:
    """Also those that end behind the buffer."""
    buffer = card.dram("x", 64, 20)
    assert refusal(card, "upload", _part(buffer["buffer"], offset, count)).code == "argument"


def test_staging_memory_has_an_end(card: Client) -> None:
    """A part behind it."""
    buffer = card.dram("x", 64, 16)
    part = {"buffer": buffer["buffer"], "offset": 0, "staging": {"offset": (1 << 20) - 64, "bytes": 1024}}
    assert "staging" in refusal(card, "upload", part).message


def test_queue_1_has_to_be_there(client: Client) -> None:
    """With one queue there is none."""
    client.open("memory", "1.2.3", queues=1)
    buffer = client.dram("x", 64, 16)
    answer = refusal(client, "write_inputs", {"writes": [_part(buffer["buffer"])]})
    assert "2 queues" in answer.message


def test_no_room_is_a_refusal(card: Client) -> None:
    """And the session goes on."""
    place = {"kind": "dram", "page_bytes": 64, "pages": 1 << 20}
    answer = refusal(card, "allocate", {"name": "huge", "place": place})
    assert answer.code == "memory" and "'huge'" in answer.message
    card.dram("small", 64, 1)


def test_telemetry_counts(card: Client) -> None:
    """What was made."""
    copying(card)
    told = card.call("telemetry")
    assert (told["buffers"], told["programs"], told["traces"]) == (2, 1, 0)
    assert (told["allocated_dram"], told["driver"]) == (2048, None)


def test_close_ends_the_worker(card: Client) -> None:
    """With status 0."""
    assert card.call("close") == {}
    assert card.process.wait(5) == 0
