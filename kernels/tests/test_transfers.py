"""What movers and feeders move, on the device."""

import numpy as np
import pytest
from lowered import core, encode, rectangle
from machine import Bytes, Core, Program, Ring, poisoned, run

pytestmark = pytest.mark.device

TILE = 2048


def pages(count: int, size: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, size), dtype=np.uint8)


def test_tiles_go_to_l1_and_back() -> None:
    source, target = pages(20, TILE, 1), np.zeros((20, TILE), np.uint8)
    moved = Core((1, 2), poisoned(64 * 1024))
    read = dict(buffer=3, tile=2, tile_step=5, count=4, offset=512, bytes=1024, address=4096, address_step=2048)
    moved.mover = [
        encode("ReadTiles", **read),
        encode("WriteTiles", **(read | dict(buffer=7, tile=1, tile_step=3, offset=0))),
    ]
    result = run(Program([moved], buffers={3: source, 7: target}))
    expected, written = poisoned(64 * 1024), target.copy()
    for piece in range(4):
        data = source[2 + 5 * piece, 512:1536]
        expected[4096 + 2048 * piece :][:1024] = data
        written[1 + 3 * piece, :1024] = data
    assert np.array_equal(result.l1[0], expected)
    assert np.array_equal(result.buffers[7], written)
    assert np.array_equal(result.buffers[3], source)


def test_rows_come_in_order_and_by_a_list() -> None:
    table = pages(40, 128, 2)
    rows = [39, 7, 7, 0, 16]
    l1 = poisoned(16 * 1024)
    l1[1024:][: 4 * len(rows)] = np.array(rows, np.uint32).view(np.uint8)
    moved = Core((0, 0), l1.copy())
    read = dict(table=5, offset=64, bytes=64, address_step=128)
    moved.feeder = [
        encode("ReadRows", list=None, first=3, count=9, address=4096, **read),
        encode("ReadRows", list=1024, first=1, count=4, address=8192, **read),
    ]
    result = run(Program([moved], tables={5: table}))
    for number in range(9):
        l1[4096 + 128 * number :][:64] = table[3 + number, 64:]
    for number, row in enumerate(rows[1:]):
        l1[8192 + 128 * number :][:64] = table[row, 64:]
    assert np.array_equal(result.l1[0], l1)


def test_arena_and_zeros() -> None:
    banks = pages(8, 4096, 3)
    moved = Core((10, 9), poisoned(32 * 1024))
    moved.mover = [
        encode("ReadArena", bank=6, offset=1024, bytes=2048, address=512),
        encode("Zero", address=16384, bytes=4096 + 84),
    ]
    result = run(Program([moved], arena=banks))
    expected = poisoned(32 * 1024)
    expected[512:2560], expected[16384 : 20480 + 84] = banks[6, 1024:3072], 0
    assert np.array_equal(result.l1[0], expected)


def test_pieces_are_sent_and_signalled() -> None:
    """Core 0 sends to 1, which sends on to 2; each waits for the bytes by a semaphore. Core 1 moves pieces within."""
    places = [(0, 0), (8, 3), (2, 7)]
    cores = [Core(place, poisoned(32 * 1024)) for place in places]
    data = pages(1, 4096, 4)[0]
    cores[0].l1[1024:5120] = data
    hop = dict(count=4, bytes=512)
    cores[0].mover = [
        encode("Send", address=1024, step=1024, core=core(*places[1]), target=8192, target_step=512, **hop),
        encode("Signal", core=core(*places[1]), semaphore=4, value=2),
    ]
    cores[1].mover = [
        encode("Wait", semaphore=4, value=2),
        encode("Send", address=8192, step=512, core=core(*places[1]), target=16384, target_step=512, **hop),
        encode("Send", address=16384, step=512, core=core(*places[2]), target=0, target_step=2048, **hop),
        encode("Signal", core=core(*places[2]), semaphore=1, value=1),
    ]
    cores[2].feeder = [encode("Wait", semaphore=1, value=4), encode("Zero", address=20480, bytes=64)]
    cores[2].semaphores = [0, 3]
    result = run(Program(cores))
    sent = data.reshape(4, 1024)[:, :512]
    expected = [memory.l1.copy() for memory in cores]
    expected[1][8192:][:2048] = expected[1][16384:][:2048] = sent.reshape(-1)
    for piece in range(4):
        expected[2][2048 * piece :][:512] = sent[piece]
    expected[2][20480:20544] = 0
    for found, wanted in zip(result.l1, expected, strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.full
@pytest.mark.parametrize("noc", ["Noc0", "Noc1"])
def test_a_rectangle_gets_bytes_and_a_signal(noc: str) -> None:
    """A rectangle across the gap in the card's columns; the corners stand in the order of the network that is named."""
    hub, places = (1, 1), [(x, y) for y in (3, 4) for x in range(5, 10)]
    cores = [Core(place, poisoned(64 * 1024)) for place in [hub, *places]]
    data = pages(1, 20 * 1024, 5)[0]
    cores[0].l1[: len(data)] = data
    corners = rectangle(places[0], places[-1]) if noc == "Noc0" else rectangle(places[-1], places[0])
    cores[0].mover = [
        encode("Multicast", address=0, bytes=len(data), rectangle=corners, noc=noc, target=32768),
        encode("SignalAll", rectangle=corners, noc=noc, semaphore=2, value=3),
    ]
    for receiver in cores[1:]:
        receiver.mover = [
            encode("Wait", semaphore=2, value=3),
            encode(
                "Send", address=32768, step=0, count=1, bytes=64, core=core(*receiver.place), target=0, target_step=0
            ),
        ]
    result = run(Program(cores))
    assert np.array_equal(result.l1[0], cores[0].l1)
    for receiver, found in zip(cores[1:], result.l1[1:], strict=True):
        receiver.l1[32768:][: len(data)] = data
        receiver.l1[:64] = data[:64]
        assert np.array_equal(found, receiver.l1)


def test_a_reader_streams_packets_to_two_consumers() -> None:
    """Credits let the reader fill as many slots as there are; each consumer's mover takes packets and frees slots."""
    slots, count = 2, 5
    sizes = [16384, 15232, 64, 16320, 1088]
    banks = pages(8, 2 * count * 16384, 6)
    ring = Ring(0, slots, packets=4, freed=5)
    reader = Core((10, 0), poisoned(256 * 1024), ring=ring, bank=3, semaphores=[slots, slots])
    consumers = [Core(place, poisoned(256 * 1024), ring=ring) for place in ((0, 5), (6, 6))]
    for number, size in enumerate(sizes):
        for credit, consumer in enumerate(consumers):
            offset = (2 * number + credit) * 16384
            reader.mover.append(
                encode("StreamPacket", offset=offset, bytes=size, consumer=core(*consumer.place), credit=credit)
            )
            own, slot = core(*consumer.place), number % slots * 16384
            target = 65536 + 16384 * number
            consumer.mover += [
                encode("Wait", semaphore=4, value=1),
                encode("Send", address=slot, step=0, count=1, bytes=size, core=own, target=target, target_step=0),
                encode("Signal", core=own, semaphore=5, value=1),
            ]
    for credit, consumer in enumerate(consumers):
        consumer.feeder = [encode("ReturnCredits", reader=core(10, 0), credit=credit, count=count)]
    result = run(Program([reader, *consumers], arena=banks))
    assert np.array_equal(result.l1[0], reader.l1)
    for credit, consumer in enumerate(consumers):
        for number, size in enumerate(sizes):
            packet = banks[3, (2 * number + credit) * 16384 :][:size]
            for target in (number % slots * 16384, 65536 + 16384 * number):
                consumer.l1[target:][:size] = packet
        assert np.array_equal(result.l1[1 + credit], consumer.l1)


def test_streams_may_be_long() -> None:
    """More bytes than the network moves at a time, to three engines."""
    steps = 700
    cores = [Core((3, 3), poisoned(64 * 1024))]
    hop = dict(step=0, count=1, bytes=16, core=core(3, 3), target_step=0)
    data = pages(steps, 16, 7)
    cores[0].l1[: 16 * steps] = data.reshape(-1)
    for step in range(steps):
        moved = encode("Send", address=16 * step, target=16384 + 16 * (steps - 1 - step), **hop)
        (cores[0].mover if step % 2 else cores[0].feeder).append(moved)
    cores[0].compute = [encode("Signal", core=core(3, 3), semaphore=3, value=1)] * steps
    found = run(Program(cores)).l1[0]
    assert np.array_equal(found[16384:][: 16 * steps], data[::-1].reshape(-1))
