"""L1 and L2 of hand-made launches: worked by hand, and against caches that are played through access by access."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict

import numpy as np
import pytest

from gpulab.gpus import Gpu, gpu
from gpulab.models.caches import SIZES, Caches, caches
from gpulab.models.carve_out import l1_bytes
from gpulab.models.residency import clocks_in_waves, starts
from gpulab.models.run import KernelRun
from gpulab.trace import ALL_LINES, ATOMIC, LOAD, STORE, Recorder, Stream, Trace, Tracing, line_hash

A100 = gpu("A100")
KIB = 1024
BODY = """
    ld.global.f32 %f1, [%rd1];
    st.global.f32 [%rd2], %f1;
    red.global.add.f32 [%rd3], %f1;
    ld.global.cg.f32 %f2, [%rd1];
    ld.volatile.global.f32 %f3, [%rd1];
    ld.relaxed.cta.global.f32 %f3, [%rd1];
    ret;
"""
KINDS = {0: LOAD, 1: STORE, 2: ATOMIC, 3: LOAD, 4: LOAD, 5: LOAD}
#: (block, warp, time, instruction, sectors)
Request = tuple[int, int, int, int, list[int]]


def line(number: int) -> list[int]:
    """The four sectors of a line."""
    return [4 * number + sector for sector in range(4)]


def traced(requests: list[Request], near: tuple[int, ...] = (0,)) -> Trace:
    recorder = Recorder(Tracing(near))
    for block, warp, time, instruction, sectors in requests:
        recorder.request(sectors, kind=KINDS[instruction], block=block, warp=warp, instruction=instruction, time=time)
    return recorder.finish()


def modeled(make_run, requests: list[Request], spec: Gpu = A100, near: tuple[int, ...] = (0,), **launch) -> Caches:
    return judged(make_run(BODY, **launch), traced(requests, near), spec)


def judged(run: KernelRun, trace: Trace, spec: Gpu) -> Caches:
    run = dataclasses.replace(run, counters=dataclasses.replace(run.counters, trace=trace))
    return caches(run, spec, run.occupancy(spec))


def with_l1(lines: int, **changes: float) -> Gpu:
    """An A100 with an L1 of so many lines."""
    return dataclasses.replace(A100, l1_bytes=lines * 128, reserved_shared_bytes_per_block=0, **changes)


def with_l2(lines: int) -> Gpu:
    return dataclasses.replace(A100, l2_bytes=lines * 128)


# ---- the carve-out


@pytest.mark.parametrize(
    ("name", "block", "shared", "kib"),
    [
        ("A100", 1024, 0, 192 - 8),  # 2 blocks with 1 KiB of the system each
        ("A100", 32, 0, 192 - 32),  # 32 of them: exactly 32 KiB
        ("A100", 256, 4 * KIB, 192 - 64),  # 8 blocks of 5 KiB
        ("A100", 1024, 80 * KIB, 192 - 164),
        ("T4", 1024, 0, 96 - 32),  # Turing has no smaller one
        ("RTX 4090", 1024, 16 * KIB, 128 - 32),
    ],
)
def test_l1_is_what_the_carve_out_leaves(make_run, name: str, block: int, shared: int, kib: int) -> None:
    run = dataclasses.replace(make_run("ret;", block=block), static_shared_bytes=shared)
    assert l1_bytes(gpu(name), run.occupancy(name), shared) == kib * KIB


def test_without_known_sizes_l1_has_all_the_rest(make_run) -> None:
    mine = dataclasses.replace(A100, shared_carve_outs_bytes=())
    held = make_run("ret;", block=1024).occupancy(mine)
    assert l1_bytes(mine, held, 10 * KIB) == (192 - 2 * 11) * KIB


# ---- order


def test_a_block_begins_when_another_ends() -> None:
    assert starts(np.array([10, 30, 5, 100, 1]), 2).tolist() == [0, 0, 10, 15, 30]
    assert starts(np.array([10, 30]), 8).tolist() == [0, 0]


def test_waves_follow_each_other() -> None:
    turns, times = np.array([0, 107, 108, 216]), np.array([3, 4, 5, 6])
    assert clocks_in_waves(turns, times, 108, 50.5).tolist() == [3, 4, 55, 107]


# ---- L1, by hand


def test_a_stream_hits_nothing(make_run) -> None:
    found = modeled(make_run, [(0, 0, 64 * step, 0, line(step)) for step in range(100)])
    assert found.l1_miss_shares[0] == 1


@pytest.mark.parametrize(("capacity", "share"), [(100, 0.5), (99, 1.0), (1000, 0.5)])
def test_a_second_walk_hits_if_the_first_fits(make_run, capacity: int, share: float) -> None:
    requests = [(0, 0, 64 * step, 0, line(step % 100)) for step in range(200)]
    assert modeled(make_run, requests, with_l1(capacity)).l1_miss_shares[0] == share


def test_sectors_of_a_line_miss_one_by_one(make_run) -> None:
    # A column of eight-byte items: each line is used in all of its sectors, one a step.
    requests = [(0, 0, 64 * step, 0, [4 * row + step // 4 for row in range(32)]) for step in range(16)]
    assert modeled(make_run, requests).l1_miss_shares[0] == 1 / 4


def test_warps_that_walk_together_miss_once(make_run) -> None:
    # Eight warps read the same long row; one after the other they would find nothing of it.
    requests = [(0, warp, 100 * step, 0, line(step)) for warp in range(8) for step in range(500)]
    assert modeled(make_run, requests, with_l1(10), block=256).l1_miss_shares[0] == 1 / 8


def test_blocks_of_an_sm_share_and_sms_do_not(make_run) -> None:
    requests = [(block, 0, 100 * step, 0, line(step)) for block in (0, 54, 108, 162) for step in range(50)]
    near = (0, 54, 108, 162)
    assert modeled(make_run, requests, near=near, grid=216).l1_miss_shares[0] == 1 / 2
    assert modeled(make_run, requests[:50], near=(0,), grid=54).l1_miss_shares[0] == 1
    # One block at a time, and an L1 that keeps ten lines: nothing is left of the first.
    alone = with_l1(10, max_blocks_per_sm=1)
    assert modeled(make_run, requests, alone, near, grid=216).l1_miss_shares[0] == 1


def test_stores_and_atomics_leave_l1_alone(make_run) -> None:
    requests = [(0, 0, 0, 1, line(1)), (0, 0, 100, 2, line(2)), (0, 0, 200, 0, line(1)), (0, 0, 300, 0, line(2))]
    assert modeled(make_run, requests).l1_miss_shares[0] == 1


def test_loads_that_pass_l1(make_run) -> None:
    again = [(0, 0, 100 * step, instruction, line(7)) for step in range(4) for instruction in (0, 3, 4, 5)]
    found = modeled(make_run, again).l1_miss_shares
    assert found[[3, 4]].tolist() == [1, 1]
    assert found[0] + found[5] == 1 / 4


def test_merged_requests_hit(make_run) -> None:
    # 32 requests to one line within a window of 64 instructions are one event.
    found = modeled(make_run, [(0, 0, step, 0, line(3)) for step in range(32)])
    assert found.l1_miss_shares[0] == 1 / 32


def test_a_load_without_events_is_as_good_as_the_others(make_run) -> None:
    found = modeled(make_run, [(0, 0, 100 * step, 0, line(step // 4)) for step in range(100)])
    assert found.l1_miss_shares[5] == found.l1_miss_shares[0] == 1 / 4
    assert modeled(make_run, []).l1_miss_shares.tolist() == [1] * 7


def test_few_lines_that_a_sample_has_not_are_in_l1(make_run) -> None:
    # Every request goes to one line, and too many to record them: the sample is halved until it has no line.
    whole = traced([(0, 0, 100 * step, 0, line(3)) for step in range(10)])
    trace = Trace(Stream(whole.near.events[:0], ALL_LINES // 64, whole.near.blocks), whole.far)
    assert judged(make_run(BODY), trace, A100).l1_miss_shares[0] == 0


# ---- L2, by hand


def test_l2_keeps_what_fits(make_run) -> None:
    requests = [(0, 0, 5000 * step, 0, line(step % 64)) for step in range(192)]
    assert modeled(make_run, requests, with_l2(64)).reads == (1, 1, 1, 3)
    assert modeled(make_run, requests, with_l2(63)).reads == (1, 1, 3, 3)
    assert modeled(make_run, requests).writes is None


def test_stores_are_written_back_once_a_stay(make_run) -> None:
    requests = [(0, 0, 5000 * step, 1, line(step % 64)) for step in range(192)]
    found = modeled(make_run, requests, with_l2(63))
    assert (found.reads, found.writes) == (None, (1, 1, 3, 3))


def test_what_was_stored_is_not_fetched(make_run) -> None:
    requests = [(0, 0, 0, 1, line(1)), (0, 0, 5000, 0, line(1)), (0, 0, 10_000, 0, line(2))]
    assert modeled(make_run, requests).reads == (0.5,) * len(SIZES)


def test_atomics_fetch_and_write_back(make_run) -> None:
    found = modeled(make_run, [(0, 0, 5000 * step, 2, [step % 2]) for step in range(10)])
    assert found.reads == found.writes == (1,) * len(SIZES)


def test_blocks_of_a_wave_share_and_waves_need_room(make_run) -> None:
    # Each block reads the same 50 lines; 12 blocks run at once, then 12 more.
    body = [(block, 0, 4096 * step, 0, line(step)) for block in range(24) for step in range(50)]
    counts = {index: {"warp_instructions": 24 * 4096 * 8} for index in range(7)}  # 56 * 4096 each
    run, trace = make_run(BODY, counts, grid=24), traced(body)
    assert judged(run, trace, dataclasses.replace(with_l2(50), sm_count=12, max_blocks_per_sm=1)).reads == (1, 1, 1, 2)
    assert judged(run, trace, dataclasses.replace(with_l2(49), sm_count=12, max_blocks_per_sm=1)).reads == (1, 1, 2, 2)
    # All at once: one walk.
    assert judged(run, trace, dataclasses.replace(with_l2(49), sm_count=12)).reads == (1, 1, 1, 1)


# ---- played through


def random_requests(blocks: int, warps: int, steps: int) -> list[Request]:
    """Each warp walks over lines of its own, of its block and of all, at any sectors; no two requests are merged."""
    rng = np.random.default_rng(5)
    found = []
    for block in range(blocks):
        for warp in range(warps):
            for step in range(steps):
                base = rng.choice([0, 1000 + 50 * block, 9000 + 10 * (block * warps + warp)])
                lines = base + rng.integers(0, 60, rng.integers(1, 4))
                sectors = sorted({4 * int(each) + int(rng.integers(4)) for each in lines})
                found.append((block, warp, 4096 * step + int(rng.integers(50)), int(rng.choice([0, 0, 5])), sectors))
    return found


def play_l1(requests: list[Request], lines: int) -> dict[int, tuple[int, int]]:
    """Sectors asked for and missed by each instruction, in a cache of so many lines."""
    held: OrderedDict[int, set[int]] = OrderedDict()
    found: dict[int, tuple[int, int]] = {}
    for _, _, _, instruction, sectors in requests:
        asked, missed = found.get(instruction, (0, 0))
        for number in sorted({sector // 4 for sector in sectors}):
            mine = {sector for sector in sectors if sector // 4 == number}
            has = held.pop(number, set())
            asked, missed = asked + len(mine), missed + len(mine - has)
            held[number] = has | mine
            if len(held) > lines:
                held.popitem(last=False)
        found[instruction] = asked, missed
    return found


@pytest.mark.parametrize("lines", [5, 20, 60, 400])
def test_l1_as_if_played_through(make_run, lines: int) -> None:
    requests = random_requests(blocks=1, warps=4, steps=60)
    found = modeled(make_run, requests, with_l1(lines), block=128).l1_miss_shares
    in_turn = sorted(requests, key=lambda each: (each[2], each[1], each[3]))
    for instruction, (asked, missed) in play_l1(in_turn, lines).items():
        assert found[instruction] == pytest.approx(missed / asked)


@pytest.mark.parametrize("lines", [10, 100, 1000])
def test_l2_as_if_played_through(make_run, lines: int) -> None:
    requests = [(*each[:3], step % 3, each[4]) for step, each in enumerate(random_requests(6, 2, 40))]
    trace, held = traced(requests), OrderedDict()
    loaded, stored, reads, writes = set(), set(), 0, 0
    for event in sorted(trace.far.events, key=lambda each: (each["time"], each["block"], each["warp"])):
        number, kind = int(event["line"]), int(event["kind"])
        mine = {sector for sector in range(4) if event["sectors"] >> sector & 1}
        has, dirty = held.pop(number, (set(), set()))
        if kind != STORE:
            reads += len(mine - has)
            loaded |= {(number, sector) for sector in mine}
        if kind != LOAD:
            stored |= {(number, sector) for sector in mine}
            dirty = dirty | mine
        held[number] = has | mine, dirty
        if len(held) > lines:
            writes += len(held.popitem(last=False)[1][1])
    writes += sum(len(dirty) for _, dirty in held.values())
    found = judged(make_run(BODY, grid=6, block=64), trace, with_l2(lines))
    assert found.reads is not None and found.writes is not None
    assert found.reads[SIZES.index(1.0)] == pytest.approx(reads / len(loaded))
    assert found.writes[SIZES.index(1.0)] == pytest.approx(writes / len(stored))


def test_an_eighth_of_the_lines_tells_the_same(make_run) -> None:
    # Every other load goes to one of 300 lines, the rest to one of 3,000.
    requests = [
        (0, warp, 100 * step, 0, line(int(number % (300 if step % 2 else 3000))))
        for warp in range(4)
        for step, number in enumerate(np.random.default_rng(warp).integers(0, 3000, 4000))
    ]
    whole = traced(requests)
    events = whole.near.events
    part = events[line_hash(events["line"]) < np.uint64(ALL_LINES // 8)]
    sampled = Trace(Stream(part, ALL_LINES // 8, whole.near.blocks), whole.far)
    run = make_run(BODY, block=128)
    for lines in (64, 256, 1024):
        all_lines, some = (judged(run, trace, with_l1(lines)).l1_miss_shares[0] for trace in (whole, sampled))
        assert some == pytest.approx(all_lines, abs=0.04)
        assert 0.1 < all_lines < 0.95


def test_another_size_does_not_order_the_trace_again(make_run) -> None:
    trace = traced([(0, 0, 5000 * step, 0, line(step % 64)) for step in range(192)])
    run = make_run(BODY)
    first = judged(run, trace, with_l2(10))
    kept = dict(trace.made)
    assert judged(run, trace, with_l2(64)).reads != first.reads
    assert trace.made == kept and len(kept) == 2
