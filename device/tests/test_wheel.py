"""The worker on the wheel and a simulator: each test has a worker, and so a process, of its own."""

import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import STAGING_BYTES, Client, Refused, kernel, program
from gr00t_device_worker import pin

DEVICE = Path(__file__).resolve().parent.parent
KERNELS = DEVICE / "tests" / "kernels"
PAGE = 1024
BANKS = 8
# A simulator compiles firmware, and runs a million times slower than a card.
TIMEOUT = 300.0


def reason_without_simulator() -> str | None:
    """The worker needs a simulator with two queues and traces: ttsim, a library. wolfpine is a folder."""
    simulator = os.environ.get("TT_METAL_SIMULATOR")
    if simulator is None or importlib.util.find_spec("ttnn") is None:
        return "needs a simulator (TT_METAL_SIMULATOR) and device/requirements.txt"
    return "needs ttsim: wolfpine has no traces and one queue" if Path(simulator).is_dir() else None


pytestmark = pytest.mark.skipif(reason_without_simulator() is not None, reason=reason_without_simulator() or "")


def cache(tmp_path: Path) -> str:
    """The directory for compiled kernels: firmware is compiled once for all tests where one is named."""
    return os.environ.get("TT_METAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def wheel(tmp_path: Path) -> Iterator[Client]:
    """A worker on the wheel, with an open card."""
    command = [sys.executable, "-m", "gr00t_device_worker"]
    with Client(command, {"PYTHONPATH": str(DEVICE)}, TIMEOUT) as client:
        client.card = client.open(pin.WORKER, pin.TTNN, cache_dir=cache(tmp_path))
        yield client


def test_case_87_no_home_is_needed(tmp_path: Path) -> None:
    """Where the directory for compiled kernels is named; a path below a file is writable for nobody."""
    (tmp_path / "file").touch()
    environment = {"PYTHONPATH": str(DEVICE), "HOME": str(tmp_path / "file" / "home")}
    with Client([sys.executable, "-m", "gr00t_device_worker"], environment, TIMEOUT) as client:
        client.open(pin.WORKER, pin.TTNN, cache_dir=cache(tmp_path))
        first, second, copy = copying(client, 2)
        client.put("upload", first, noise(2 * PAGE, 1))
        run(client, copy)
        assert client.get(second, 2 * PAGE) == noise(2 * PAGE, 1)


def rectangle(*corners: int) -> dict[str, object]:
    """From `x0, y0` to `x1, y1`."""
    return {"start": list(corners[:2]), "end": list(corners[2:])}


def noise(count: int, seed: int) -> bytes:
    """Bytes that are never the same."""
    return random.Random(seed).randbytes(count)


def on_core(source: str, args: list[int], **changes: object) -> dict[str, object]:
    """The fields of `build` for one kernel on core (0, 0), with room for a page."""
    page = {"index": 0, "cores": [rectangle(0, 0, 0, 0)], "total_bytes": PAGE, "page_bytes": PAGE}
    one = kernel(KERNELS / source, args, compile_time_args=[PAGE, BANKS], **changes)
    return program(one, circular_buffers=[page | {"format": "bf16"}])


def copying(client: Client, pages: int, common: bool = False) -> tuple[int, int, int]:
    """Two buffers and a program that copies the first to the second, by run-time arguments or common ones."""
    first, second = client.dram("first", PAGE, pages), client.dram("second", PAGE, pages)
    args = [first["address"], second["address"], 0, pages]
    fields = on_core("copy.cpp", args)
    if common:
        changes: dict[str, object] = {"defines": [["COMMON", "1"]], "common_runtime_args": args}
        fields = on_core("copy.cpp", [], **changes)
    return first["buffer"], second["buffer"], build(client, fields)


def build(client: Client, fields: dict[str, object]) -> int:
    """Number of a new program."""
    number = client.call("build", fields)["program"]
    assert isinstance(number, int)
    return number


def run(client: Client, *programs: int) -> None:
    """Untraced, or recorded."""
    client.call("run", {"programs": list(programs)})


def test_the_card_is_described(wheel: Client) -> None:
    """As kernels need it, and `telemetry` what is used of it."""
    card = wheel.card
    assert (card["arch"], card["dram_banks"], card["dram_alignment"]) == ("blackhole", BANKS, 64)
    grid, noc = card["grid"], card["noc"]
    assert isinstance(grid, dict) and isinstance(noc, list)
    assert grid["columns"] >= 11 and grid["rows"] >= 10
    assert len({tuple(core) for core in noc}) == grid["columns"] * grid["rows"]
    before = wheel.call("telemetry")
    wheel.dram("x", PAGE, 80)
    after = wheel.call("telemetry")
    assert isinstance(before["allocated_dram"], int) and isinstance(after["allocated_dram"], int)
    assert after["allocated_dram"] - before["allocated_dram"] == 80 * PAGE


def test_a_buffer_of_many_pieces_is_one_line_of_pages(wheel: Client) -> None:
    """A kernel sees across pieces; the host writes and reads each of them."""
    pages = STAGING_BYTES // PAGE + 40
    first, second, copy = copying(wheel, pages)
    data = noise(40 * PAGE, 1)
    wheel.put("upload", first, data, STAGING_BYTES)
    head = noise(STAGING_BYTES, 2)
    wheel.put("upload", first, head, 0)
    run(wheel, copy)
    assert wheel.get(second, STAGING_BYTES) == head
    assert wheel.get(second, 40 * PAGE, STAGING_BYTES) == data


def test_traced_equals_untraced(wheel: Client) -> None:
    """With inputs that are written on queue 1."""
    first, second, copy = copying(wheel, 20)
    data = noise(20 * PAGE, 1)
    wheel.put("upload", first, data)
    run(wheel, copy)
    untraced = wheel.get(second, 20 * PAGE)
    wheel.call("begin_capture")
    run(wheel, copy)
    trace = wheel.call("end_capture")["trace"]
    for value in (noise(20 * PAGE, 2), data):
        event = wheel.put("write_inputs", first, value)["event"]
        told = wheel.call("replay", {"trace": trace, "after": event})
        assert isinstance(told["nanoseconds"], int) and told["nanoseconds"] > 0
        assert wheel.get(second, 20 * PAGE) == value
    assert untraced == data
    with pytest.raises(Refused) as caught:
        wheel.dram("late", PAGE, 1)
    assert caught.value.code == "captured"
    assert wheel.call("close") == {}
    assert wheel.process.wait(60) == 0


@pytest.mark.parametrize("common", [False, True])
def test_case_48_programs_keep_their_own_arguments(wheel: Client, common: bool) -> None:
    """Two that differ in nothing else, run in turns and traced, with other buffers made between."""
    first, second, copy = copying(wheel, 8, common)
    wheel.dram("between", PAGE, 16)
    third, fourth, other = copying(wheel, 8, common)
    data = [noise(8 * PAGE, 1), noise(8 * PAGE, 2)]
    wheel.put("upload", first, data[0])
    wheel.put("upload", third, data[1])
    for programs in ((copy,), (other,), (copy, other)):
        run(wheel, *programs)
    assert [wheel.get(second, 8 * PAGE), wheel.get(fourth, 8 * PAGE)] == data
    wheel.call("begin_capture")
    run(wheel, other, copy)
    trace = wheel.call("end_capture")["trace"]
    wheel.put("write_inputs", first, data[1])
    event = wheel.put("write_inputs", third, data[0])["event"]
    for _ in range(3):
        wheel.call("replay", {"trace": trace, "after": event})
    assert [wheel.get(second, 8 * PAGE), wheel.get(fourth, 8 * PAGE)] == data[::-1]


def test_each_core_has_its_arguments(wheel: Client) -> None:
    """A kernel on two rectangles, on NoC 1."""
    first, second = wheel.dram("first", PAGE, 12), wheel.dram("second", PAGE, 12)
    cores = [rectangle(0, 0, 1, 0), rectangle(4, 2, 4, 2)]
    places = [[0, 0], [1, 0], [4, 2]]
    args = [
        {"core": core, "args": [first["address"], second["address"], 4 * index, 4]}
        for index, core in enumerate(places)
    ]
    page = {"index": 0, "cores": cores, "total_bytes": PAGE, "page_bytes": PAGE, "format": "f32"}
    one = kernel(
        KERNELS / "copy.cpp",
        [],
        processor="ncrisc",
        cores=cores,
        compile_time_args=[PAGE, BANKS],
        runtime_args=args,
    )
    copy = build(wheel, program(one, circular_buffers=[page]))
    data = noise(12 * PAGE, 3)
    wheel.put("upload", first["buffer"], data)
    run(wheel, copy)
    assert wheel.get(second["buffer"], 12 * PAGE) == data


def test_l1_is_written_core_after_core(wheel: Client) -> None:
    """At one address."""
    place = {"kind": "l1", "bytes_per_core": 4160, "cores": rectangle(1, 1, 3, 2)}
    reply = wheel.call("allocate", {"name": "l1", "place": place})
    buffer, size = reply["buffer"], reply["bytes"]
    assert isinstance(buffer, int) and size == 6 * 4160
    data = noise(size, 4)
    wheel.put("upload", buffer, data)
    assert wheel.get(buffer, size) == data


def test_a_kernel_that_does_not_compile_is_a_refusal(wheel: Client) -> None:
    """With the compiler's words; the session goes on."""
    broken = build(wheel, on_core("broken.cpp", []))
    with pytest.raises(Refused) as caught:
        run(wheel, broken)
    assert caught.value.code == "kernel"
    assert "this_is_not_declared" in caught.value.message
    first, second, copy = copying(wheel, 8)
    data = noise(8 * PAGE, 5)
    wheel.put("upload", first, data)
    run(wheel, copy)
    assert wheel.get(second, 8 * PAGE) == data


def test_case_83_l1_that_is_not_there_is_refused(wheel: Client) -> None:
    """With the name of the buffer, and what is free."""
    place = {"kind": "l1", "bytes_per_core": 1 << 21, "cores": rectangle(0, 0, 0, 0)}
    with pytest.raises(Refused) as caught:
        wheel.call("allocate", {"name": "huge", "place": place})
    assert caught.value.code == "memory" and "'huge'" in caught.value.message


def test_a_simulator_that_ends_takes_the_worker_only(wheel: Client) -> None:
    """No reply, and a status that is not that of a worker."""
    stray = build(wheel, on_core("stray.cpp", []))
    with pytest.raises((EOFError, ConnectionResetError)):
        run(wheel, stray)
    assert wheel.process.wait(60) not in (0, 2, 3, 4)


def test_case_49_a_call_that_never_returns_ends_with_its_client(wheel: Client) -> None:
    """The kernel never ends; the worker does not see its line end, but its lifeline."""
    endless = build(wheel, on_core("endless.cpp", []))
    wheel.socket.settimeout(20)
    with pytest.raises(TimeoutError):
        run(wheel, endless)
    assert wheel.process.poll() is None
    os.close(wheel.life_write)
    wheel.life_write = os.dup(wheel.life_read)
    assert wheel.process.wait(10) < 0
