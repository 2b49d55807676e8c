"""Programs that run again and again: by passes of a segment, and by replays of a trace."""

import numpy as np
import pytest
from blocks import Block, as_values, from_bf16, random, round_to_bf16
from lowered import core, encode
from machine import PACKET_BYTES, Core, Program, Ring, Segment, poisoned, run
from products import engine_error, product
from weights import arena, packed, packets

pytestmark = [pytest.mark.device, pytest.mark.full]

PLACE = (4, 4)
SLOTS = 2
#: Semaphores: an operand has come; compute is done; packets; free slots.
COME, DONE, PACKETS, FREED = range(4)


def product_of(x: Block, out: Block, bias: int) -> list[int]:
    return encode(
        "Matmul", x=x.address, row_tiles=2, first_row=0, rows=51, inputs=96, columns=32, weights="Bfp8B",
        bias=bias, vector_step=64, activation="Identity", out=out.address, out_format="F32", x_format="Bf16",
    )  # fmt: skip


@pytest.mark.parametrize(("passes", "replays"), [(3, 0), (2, 2)])
def test_every_pass_and_every_replay_begins_anew(passes: int, replays: int) -> None:
    """Adds a product to sums in each pass, with the bias of the pass; packets come through a ring of two slots."""
    weight = packed("Bfp8B", 96, 32, 1)
    banks, places = arena(packets(weight.tiles))
    x = Block(SLOTS * PACKET_BYTES, "Bf16", 2, 3)
    out, sums = Block(x.end, "F32", 2, 1), Block(x.end + 8192, "F32", 2, 1)
    biases, first_pass = sums.end, 1
    l1 = poisoned(biases + 4096)
    x.set(l1, 0, 0, random((51, 96), 2))
    sums.set(l1, 0, 0, np.zeros((51, 32), np.float32))
    bias = round_to_bf16(random((8, 32), 3))
    l1[biases:][: bias.nbytes] = bias.view(np.uint8).reshape(-1)
    worker = Core(PLACE, l1.copy(), first_pass=first_pass, passes=passes, semaphores=[0, 1, 0, SLOTS])
    worker.ring = Ring(0, SLOTS, PACKETS, FREED)
    worker.mover = [
        encode("Wait", semaphore=DONE, value=1),
        encode("Signal", core=core(*PLACE), semaphore=COME, value=1),
    ]
    worker.feeder = [encode("LoadPacket", bank=at.bank, offset=at.offset, bytes=at.bytes) for at in places]
    add = encode(
        "Accumulate", x=out.address, x_format="F32", factor=1.0, row_tiles=2, first_row=0, rows=51, columns=32,
        out=sums.address,
    )  # fmt: skip
    worker.compute = [
        encode("Wait", semaphore=COME, value=1),
        product_of(x, out, biases),
        encode("EndStream"),
        add,
        encode("Signal", core=core(*PLACE), semaphore=DONE, value=1),
    ]
    found = run(Program([worker], arena=banks, replays=replays)).l1[0]
    values = as_values(x.get(l1))[:51]
    one, tolerance = product(values, weight.values), engine_error(values, weight.values) + 1e-5
    added = from_bf16(bias)[first_pass : first_pass + passes].astype(np.float64)
    times = 1 + replays
    expected = times * (passes * one + added.sum(axis=0))
    assert (np.abs(as_values(sums.get(found))[:51] - expected) <= times * passes * tolerance).all()
    assert (np.abs(as_values(out.get(found))[:51] - (one + added[-1])) <= tolerance).all()


def test_a_replay_waits_for_what_other_cores_send_in_it() -> None:
    """What was signalled in the launch before counts no more: the receiver would pass on old sums."""
    replays, tiles, place = 3, 8, (9, 2)
    block = Block(0, "F32", tiles, 1)
    received, passed = block.end, 2 * block.end
    l1 = poisoned(3 * block.end)
    block.set(l1, 0, 0, np.ones((32 * tiles, 32), np.float32))
    sender, receiver = Core(PLACE, l1.copy(), semaphores=[0, 1]), Core(place, poisoned(3 * block.end))
    double = encode(
        "Accumulate", x=0, x_format="F32", factor=1.0, row_tiles=tiles, first_row=0, rows=32 * tiles, columns=32, out=0
    )
    whole = dict(count=1, step=0, bytes=block.bytes, target_step=0)
    sender.compute = [double, encode("Signal", core=core(*PLACE), semaphore=COME, value=1)]
    sender.mover = [
        encode("Wait", semaphore=COME, value=1),
        encode("Send", address=0, core=core(*place), target=received, **whole),
        encode("Signal", core=core(*place), semaphore=COME, value=1),
    ]
    receiver.mover = [
        encode("Wait", semaphore=COME, value=1),
        encode("Send", address=received, core=core(*place), target=passed, **whole),
    ]
    found = run(Program([sender, receiver], replays=replays)).l1[1]
    sums = found[passed:].view(np.float32)
    assert (sums == 2.0 ** (1 + replays)).all()


def test_segments_follow_one_another() -> None:
    """Every engine goes on to the next segment by itself; one that has nothing to do in a segment passes it by."""
    block = Block(0, "F32", 1, 1)
    l1 = poisoned(64 * 1024)
    block.set(l1, 0, 0, np.ones((32, 32), np.float32))
    own = core(*PLACE)

    def add(factor: float) -> list[int]:
        return encode(
            "Accumulate", x=0, x_format="F32", factor=factor, row_tiles=1, first_row=0, rows=32, columns=32, out=0
        )  # fmt: skip

    def keep(slot: int) -> list[int]:
        target = 8192 + slot * block.bytes
        return encode("Send", address=0, step=0, count=1, bytes=block.bytes, core=own, target=target, target_step=0)

    def signal(semaphore: int) -> list[int]:
        return encode("Signal", core=own, semaphore=semaphore, value=1)

    def wait(semaphore: int) -> list[int]:
        return encode("Wait", semaphore=semaphore, value=1)

    worker = Core(PLACE, l1.copy(), passes=3, compute=[add(1.0)])
    worker.later = [
        Segment(mover=[wait(COME), keep(0), signal(DONE)], compute=[signal(COME), wait(DONE), add(2.0)], passes=2),
        Segment(feeder=[wait(FREED), keep(1)], compute=[add(-0.5), signal(FREED)]),
    ]
    found = run(Program([worker])).l1[0]
    # Doubled three times; then trebled twice, the mover keeps what it finds the second time; then halved.
    assert (as_values(Block(8192, "F32", 1, 1).get(found)) == 8.0 * 3).all()
    assert (as_values(Block(8192 + block.bytes, "F32", 1, 1).get(found)) == 8.0 * 9 / 2).all()
