"""Fields are checked: there, known, of their type, in their range."""

from pathlib import Path

import pytest
from client import kernel, program
from gr00t_device_worker import checks
from gr00t_device_worker.backend import Card
from gr00t_device_worker.refusal import Refusal
from gr00t_device_worker.requests import L1, Allocate, Build, Dram, parse

HERE = Path(__file__)
CARD = Card("blackhole", (11, 10), [], 8, 64, 16, 1_395_712)


def rectangle(*corners: int) -> dict[str, object]:
    """From `x0, y0` to `x1, y1`."""
    return {"start": list(corners[:2]), "end": list(corners[2:])}


def refused(message: dict[str, object]) -> str:
    """Why a message is refused."""
    with pytest.raises(Refusal) as caught:
        request = parse(message)
        assert isinstance(request, Build)
        checks.program(request.program, CARD)
    assert caught.value.code == "argument"
    return caught.value.message


def test_places_are_told_apart() -> None:
    """By their kind."""
    dram = {"kind": "dram", "page_bytes": 64, "pages": 2}
    l1 = {"kind": "l1", "bytes_per_core": 64, "cores": rectangle(0, 0, 10, 9)}
    for place, kind in ((dram, Dram), (l1, L1)):
        request = parse({"id": 1, "request": "allocate", "name": "x", "place": place})
        assert isinstance(request, Allocate) and isinstance(request.place, kind)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"name": ""}, "allocate.name"),
        ({"name": 3}, "allocate.name"),
        ({"name": "x" * 129}, "allocate.name"),
        ({"place": {"kind": "sram"}}, "allocate.place.kind"),
        ({"place": [1]}, "allocate.place"),
        ({"place": {"kind": "dram", "page_bytes": 64}}, "'pages'"),
        ({"place": {"kind": "dram", "page_bytes": True, "pages": 1}}, "page_bytes"),
        ({"place": {"kind": "dram", "page_bytes": 64.0, "pages": 1}}, "page_bytes"),
        ({"place": {"kind": "dram", "page_bytes": 1 << 32, "pages": 1}}, "page_bytes"),
        ({"place": {"kind": "dram", "page_bytes": 64, "pages": 0}}, "pages"),
        ({"more": 1}, "'more'"),
        ({"request": "format"}, "'format'"),
        ({"request": ["allocate"]}, "['allocate']"),
    ],
)
def test_bad_fields_are_named(change: dict[str, object], part: str) -> None:
    """By their path."""
    place = {"kind": "dram", "page_bytes": 64, "pages": 1}
    message = {"id": 1, "request": "allocate", "name": "x", "place": place}
    assert part in refused(message | change)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"source": "kernel.cpp"}, "kernels[0].source"),
        ({"source": "/nowhere/kernel.cpp"}, "kernels[0].source"),
        ({"processor": "arm"}, "processor"),
        ({"processor": "trisc"}, "compute"),
        ({"cores": []}, "cores"),
        ({"cores": [rectangle(0, 0, 11, 0)]}, "11x10"),
        ({"cores": [rectangle(1, 0, 0, 0)]}, "11x10"),
        ({"cores": [rectangle(0, 0, 1, 0), rectangle(1, 0, 1, 0)]}, "disjoint"),
        ({"cores": [rectangle(0, 0, 1, 0)]}, "of each of its 2 cores"),
        ({"runtime_args": [{"core": [0, 1], "args": []}]}, "of each of its 1 cores"),
        ({"runtime_args": [{"core": [0, 0], "args": [1 << 32]}]}, "args[0]"),
        ({"common_runtime_args": [0] * 339}, "342 numbers"),
        ({"defines": [["A"]]}, "defines[0]"),
    ],
)
def test_bad_kernels_are_named(change: dict[str, object], part: str) -> None:
    """Cores and arguments have to fit together."""
    message = {"id": 1, "request": "build", **program(kernel(HERE, [1, 2, 3], **change))}
    assert part in refused(message)


def test_bad_circular_buffers_and_semaphores_are_named() -> None:
    """Sizes, numbers, cores."""
    cores = [rectangle(0, 0, 0, 0)]
    buffer = {"index": 0, "cores": cores, "total_bytes": 100, "page_bytes": 64, "format": "bf16"}

    def build(**changes: object) -> str:
        return refused({"id": 1, "request": "build", **program(kernel(HERE, []), **changes)})

    assert "circular_buffers[0].total_bytes" in build(circular_buffers=[buffer])
    assert "circular_buffers[0].index" in build(circular_buffers=[buffer | {"index": 32}])
    semaphore = {"id": 16, "cores": cores, "initial": 0}
    assert "semaphores[0].id" in build(semaphores=[semaphore])


def test_a_good_program_is_accepted() -> None:
    """All fields as the client sends them."""
    compute = {
        "math_fidelity": "hifi2",
        "fp32_dest": True,
        "dst_full_sync": False,
        "math_approx": False,
        "unpack_to_dest_fp32": [0],
    }
    whole = [rectangle(0, 0, 10, 9)]
    kernels = [
        kernel(HERE, [1]),
        kernel(HERE, [], processor="trisc", cores=whole, runtime_args=[], compute=compute),
    ]
    request = parse({"id": 1, "request": "build", **program(*kernels)})
    assert isinstance(request, Build)
    checks.program(request.program, CARD)
    assert len(request.program.kernels[1].cores[0].cores()) == 110
