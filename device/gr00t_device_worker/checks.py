"""What has to hold of requests beyond the types of their fields, on this card."""

import os
from collections.abc import Iterable

from .backend import Card, Memory
from .limits import L1_GRANULE, MAX_RUNTIME_ARGS
from .program import Kernel, Program, Rectangle
from .refusal import Refusal
from .requests import L1, Dram


def place(place: Dram | L1, card: Card) -> None:
    """Memory that the card can have."""
    if isinstance(place, Dram):
        if place.page_bytes % card.dram_alignment:
            raise _bad("page_bytes", place.page_bytes, f"a multiple of {card.dram_alignment}")
        return
    if place.bytes_per_core % L1_GRANULE:
        raise _bad("bytes_per_core", place.bytes_per_core, f"a multiple of {L1_GRANULE}")
    _cores([place.cores], card, "cores")


def part(memory: Memory, label: str, offset: int, count: int) -> None:
    """A part of a buffer on its granules."""
    end = offset + count
    if end > memory.bytes:
        raise Refusal("argument", f"{label} has {memory.bytes} bytes; {offset} to {end} do not lie in it")
    for name, at in (("begin", offset), ("end", end)):
        if at % memory.granule and at != memory.bytes:
            message = f"parts of {label} {name} at multiples of {memory.granule} or at its end, not at {at}"
            raise Refusal("argument", message)


def program(program: Program, card: Card) -> None:
    """Sources that can be read, cores that exist, arguments for each of them."""
    for index, kernel in enumerate(program.kernels):
        _kernel(kernel, card, f"kernels[{index}]")
    for index, buffer in enumerate(program.circular_buffers):
        path = f"circular_buffers[{index}]"
        _cores(buffer.cores, card, f"{path}.cores")
        if buffer.page_bytes == 0 or buffer.total_bytes == 0 or buffer.total_bytes % buffer.page_bytes:
            raise _bad(f"{path}.total_bytes", buffer.total_bytes, f"a multiple of page_bytes, {buffer.page_bytes}")
    for index, semaphore in enumerate(program.semaphores):
        _cores(semaphore.cores, card, f"semaphores[{index}].cores")


def _kernel(kernel: Kernel, card: Card, path: str) -> None:
    if not os.path.isabs(kernel.source) or not os.access(kernel.source, os.R_OK):
        raise _bad(f"{path}.source", kernel.source, "the absolute path of a file that can be read")
    if (kernel.compute is not None) != (kernel.processor == "trisc"):
        raise _bad(f"{path}.compute", kernel.compute, "given for 'trisc', and null for 'brisc' and 'ncrisc'")
    cores = _cores(kernel.cores, card, f"{path}.cores")
    if kernel.runtime_args:
        given = [args.core for args in kernel.runtime_args]
        if len(given) != len(cores) or set(given) != cores:
            what = f"of {len(given)} cores, {len(set(given) & cores)} of them those of the kernel"
            raise _bad(f"{path}.runtime_args", what, f"of each of its {len(cores)} cores, once")
    longest = max((len(args.args) for args in kernel.runtime_args), default=0)
    if longest + len(kernel.common_runtime_args) > MAX_RUNTIME_ARGS:
        total = longest + len(kernel.common_runtime_args)
        raise _bad(f"{path}.runtime_args", f"{total} numbers", f"at most {MAX_RUNTIME_ARGS} with the common ones")


def _cores(rectangles: Iterable[Rectangle], card: Card, path: str) -> set[tuple[int, int]]:
    """All cores of the rectangles, which are disjoint and on the grid."""
    columns, rows = card.grid
    cores: set[tuple[int, int]] = set()
    for index, rectangle in enumerate(rectangles):
        (x0, y0), (x1, y1) = rectangle.start, rectangle.end
        shown = f"({x0}, {y0}) to ({x1}, {y1})"
        if not (x0 <= x1 < columns and y0 <= y1 < rows):
            raise _bad(f"{path}[{index}]", shown, f"upper left to lower right corner on a grid of {columns}x{rows}")
        new = rectangle.cores()
        if not cores.isdisjoint(new):
            raise _bad(f"{path}[{index}]", shown, "disjoint with the rectangles before it")
        cores.update(new)
    return cores


def _bad(path: str, value: object, wanted: str) -> Refusal:
    return Refusal("argument", f"{path} is {value}; it has to be {wanted}")
