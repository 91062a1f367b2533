"""Lanes, warps and blocks that wait for each other, on every engine."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.counters import Counters
from gpulab.emulator import ENGINES, RunOptions, compiled
from gpulab.errors import KernelFault

START = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r30, %ctaid.x; mov.u32 %r31, %ntid.x;
    mad.lo.u32 %r29, %r30, %r31, %r1; mad.wide.u32 %rd4, %r29, 4, %rd1;
"""
CELLS = (
    ".global .align 4 .u32 lock; .global .align 4 .u32 total; .global .align 4 .u32 flag; .global .align 4 .u32 turn;\n"
)


def result(engine: str, body: str, threads: int = 32, grid: int = 1, **more: object) -> list[int]:
    """Run a body that stores at ``[%rd4]``, the thread's own place in the grid."""
    options = more.pop("options", RunOptions(time_limit_s=20))
    found = np.zeros(threads * grid, np.uint32)
    text = kernel("u64 a", START + body, module=CELLS, **more)
    run(engine, text, found, block=threads, grid=grid, options=options)
    return found.tolist()


# ---- lanes


# The old value of a plain counter that a lock guards: each thread must see another one.
ONE_EACH = """
    ld.global.u32 %r5, [total]; st.global.u32 [%rd4], %r5; add.u32 %r5, %r5, 1; st.global.u32 [total], %r5;
"""
LOCK_BEFORE = f"""
LOOP: atom.global.cas.b32 %r2, [lock], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra LOOP;
    {ONE_EACH}
    atom.global.exch.b32 %r3, [lock], 0;
"""
LOCK_INSIDE = f"""
    mov.u32 %r7, 0;
LOOP: atom.global.cas.b32 %r2, [lock], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN;
    {ONE_EACH}
    mov.u32 %r7, 1; membar.gl; atom.global.exch.b32 %r3, [lock], 0;
AGAIN: setp.eq.u32 %p2, %r7, 0; @%p2 bra LOOP;
"""
TICKETS = f"""
    atom.global.add.u32 %r2, [lock], 1;
LOOP: ld.volatile.global.u32 %r3, [turn]; setp.ne.u32 %p1, %r3, %r2; @%p1 bra LOOP;
    {ONE_EACH}
    add.u32 %r3, %r3, 1; st.volatile.global.u32 [turn], %r3;
"""
SLEEPING = f"""
    mov.u32 %r7, 8;
LOOP: atom.global.cas.b32 %r2, [lock], 0, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra HAVE;
    nanosleep.u32 %r7; min.u32 %r7, %r7, 128; shl.b32 %r7, %r7, 1; bra.uni LOOP;
HAVE: {ONE_EACH}
    atom.global.exch.b32 %r3, [lock], 0;
"""


@pytest.mark.parametrize("lock", [LOCK_BEFORE, LOCK_INSIDE, TICKETS, SLEEPING])
def test_a_spin_lock_lets_one_thread_in_at_a_time(engine: str, lock: str) -> None:
    threads, grid = (5, 2) if engine == "reference" else (40, 2)
    assert sorted(result(engine, lock, threads, grid)) == list(range(threads * grid))


FLAG = """
    setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHERS;
LOOP: membar.gl; ld.global.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP;
    bra.uni JOIN;
OTHERS: setp.ne.u32 %p3, %r1, 9; @%p3 bra JOIN; st.global.u32 [flag], 77;
JOIN: bar.sync 0; ld.global.u32 %r2, [flag]; st.global.u32 [%rd4], %r2;
"""


def test_a_lane_waits_for_a_flag_of_its_own_warp(engine: str) -> None:
    assert result(engine, FLAG, threads=64) == [77] * 64


def test_lanes_wait_for_those_of_their_member_mask(engine: str) -> None:
    """Each side of a branch reaches one shuffle in its own time, after loops of different length."""
    body = """
    and.b32 %r2, %r1, 7; mov.u32 %r3, 0;
LOOP: setp.ge.u32 %p1, %r3, %r2; @%p1 bra OUT; add.u32 %r3, %r3, 1; bra.uni LOOP;
OUT: setp.lt.u32 %p2, %r1, 16; @%p2 bra LOW; add.u32 %r4, %r1, 100; bra.uni MEET;
LOW: add.u32 %r4, %r1, 200; bar.warp.sync 0xffff;
MEET: shfl.sync.bfly.b32 %r5, %r4, 16, 31, -1; st.global.u32 [%rd4], %r5;
"""
    assert result(engine, body) == [116 + lane for lane in range(16)] + [200 + lane for lane in range(16)]


LATE = """
    mov.u32 %r6, 0; setp.eq.u32 %p1, %r1, 3; mov.u32 %r2, 0;
HEAD: @%p1 bra COLD;
VOTE: vote.sync.ballot.b32 %r3, 1, -1; st.global.u32 [%rd4], %r3; bra.uni END;
COLD: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 5; @%p2 bra COLD; setp.eq.u32 %p1, %r2, 99; bra.uni HEAD;
END:
"""


def test_a_lane_that_comes_late_is_waited_for(engine: str) -> None:
    """The vote ranks below the code that lane 3 runs first: only waiting brings all of them together."""
    assert result(engine, LATE) == [0xFFFFFFFF] * 32


def test_halves_of_a_warp_vote_with_masks_of_their_own(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
    vote.sync.ballot.b32 %r2, 1, 0xffff0000; bra.uni JOIN;
LOW: vote.sync.ballot.b32 %r2, 1, 0xffff;
JOIN: st.global.u32 [%rd4], %r2;
"""
    assert result(engine, body) == [0xFFFF] * 16 + [0xFFFF0000] * 16


WARP_BARRIERS = """
    mov.u32 %r9, tile; mad.lo.u32 %r9, %r1, 4, %r9; xor.b32 %r8, %r1, 16; mov.u32 %r7, tile; mad.lo.u32 %r7, %r8, 4, %r7;
    setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
    st.shared.u32 [%r9], 5; bar.warp.sync -1; ld.shared.u32 %r2, [%r7]; bra.uni JOIN;
LOW: st.shared.u32 [%r9], 7; bar.warp.sync -1; ld.shared.u32 %r2, [%r7];
JOIN: st.global.u32 [%rd4], %r2;
"""


def test_warp_barriers_meet_from_different_places(engine: str) -> None:
    found = result(engine, WARP_BARRIERS, variables=".shared .align 4 .b8 tile[128];")
    assert found == [5] * 16 + [7] * 16


EARLY = """
    setp.eq.u32 %p1, %r1, 3; mov.u32 %r2, 0;
HEAD: @%p1 bra COLD;
    vote.sync.ballot.b32 %r3, 1, -1; st.global.u32 [%rd4], %r3; bra.uni END;
COLD: add.u32 %r2, %r2, 1; st.global.u32 [%rd4], %r2; setp.ge.u32 %p2, %r2, 5; @%p2 ret; setp.eq.u32 %p1, %r2, 99; bra.uni COLD;
END:
"""


def test_lanes_that_exit_release_those_that_wait_for_them(engine: str) -> None:
    assert result(engine, EARLY) == [0xFFFFFFF7 if lane != 3 else 5 for lane in range(32)]


def test_lanes_that_never_meet_are_a_fault(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
    vote.sync.ballot.b32 %r2, 1, -1; bra.uni JOIN;
LOW: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
JOIN: st.global.u32 [%rd4], %r2;
"""
    with pytest.raises(KernelFault) as caught:
        result(engine, body)
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("warp-sync", (16, 0, 0))
    assert "take part in it: lanes 0-15 at PTX line 22 (for other lanes of the warp). The mask" in str(caught.value)


def test_lanes_that_have_gone_on_are_missed_where_they_are(engine: str) -> None:
    """Lanes 16 to 23 jump over the shuffle; the rest exits, which is no fault."""
    body = """
    setp.ge.u32 %p1, %r1, 24; @%p1 ret; setp.ge.u32 %p1, %r1, 16; @%p1 bra OVER;
    shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
OVER:
    st.global.u32 [%rd4], %r2;
"""
    with pytest.raises(KernelFault) as caught:
        result(engine, body, threads=64)
    assert (caught.value.fault.ptx_line, caught.value.fault.thread) == (21, (0, 0, 0))
    assert "take part in it: lanes 16-23 at PTX line 23. The mask" in str(caught.value)


# ---- warps


def test_a_warp_waits_for_a_flag_of_a_later_one(engine: str) -> None:
    body = """
    setp.ge.u32 %p1, %r1, 32; @%p1 bra PRODUCE;
LOOP: ld.acquire.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP;
    ld.global.u32 %r3, [total]; st.global.u32 [%rd4], %r3; bra.uni DONE;
PRODUCE: st.global.u32 [total], 4711; membar.gl; st.release.gpu.global.u32 [flag], 1; st.global.u32 [%rd4], 5;
DONE:
"""
    assert result(engine, body, threads=64) == [4711] * 32 + [5] * 32


HAND_OVER = """
    mov.u32 %r9, tile; mov.u32 %r2, 0; mov.u32 %r5, 0; setp.ge.u32 %p1, %r1, 32; and.b32 %r8, %r1, 31; mad.lo.u32 %r9, %r8, 4, %r9;
    @%p1 bra CONSUME;
FILL: bar.sync 1, 64;
    add.u32 %r3, %r2, %r1; st.shared.u32 [%r9], %r3; membar.cta; bar.arrive 2, 64;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 10; @%p2 bra FILL;
    bra.uni DONE;
CONSUME: bar.arrive 1, 64;
EMPTY: bar.sync 2, 64; ld.shared.u32 %r3, [%r9]; mad.lo.u32 %r5, %r5, 3, %r3; add.u32 %r2, %r2, 1;
    setp.ge.u32 %p2, %r2, 10; @%p2 bra DONE; bar.arrive 1, 64; bra.uni EMPTY;
DONE: st.global.u32 [%rd4], %r5;
"""


def test_producer_and_consumer_warps_hand_over_by_named_barriers(engine: str) -> None:
    """PTX manual's own pattern: `arrive` on full and `sync` on empty, and the other way round."""

    def total(lane: int) -> int:
        value = 0
        for step in range(10):
            value = 3 * value + step + lane
        return value

    found = result(engine, HAND_OVER, threads=64, variables=".shared .align 4 .b8 tile[128];")
    assert found == [0] * 32 + [total(lane) for lane in range(32)]


def test_barriers_for_some_warps_open_without_the_others(engine: str) -> None:
    body = """
    shr.u32 %r2, %r1, 6; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r1, 1000;
    bar.red.popc.u32 %r3, %r2, 64, %p1; mad.lo.u32 %r3, %r2, 100, %r3;
    barrier.red.and.pred %p2, 0, 128, %p1; selp.u32 %r4, 1000, 0, %p2; add.u32 %r3, %r3, %r4; st.global.u32 [%rd4], %r3;
"""
    assert result(engine, body, threads=128) == [1164] * 64 + [1264] * 64


def test_an_exited_part_of_a_warp_counts_at_a_barrier_for_whole_warps(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 5; @%p1 ret; bar.sync 3, 64; st.global.u32 [%rd4], 1;
"""
    assert result(engine, body, threads=40) == [0] * 5 + [1] * 35


def test_lanes_that_jump_over_a_barrier_to_their_exit_count_at_it(engine: str) -> None:
    """As any that have exited: with the one lane that arrives they are a whole warp."""
    body = """
    st.global.u32 [%rd4], 6; setp.eq.u32 %p1, %r1, 3; @%p1 barrier.sync 0, 32;
"""
    assert result(engine, body, threads=4) == [6] * 4


BY_LANES = """
    mov.u32 %r9, tile; mad.lo.u32 %r9, %r1, 4, %r9; xor.b32 %r8, %r1, 5; mov.u32 %r7, tile; mad.lo.u32 %r7, %r8, 4, %r7;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    st.shared.u32 [%r9], %r1; barrier.sync 0; ld.shared.u32 %r3, [%r7]; bra.uni JOIN;
EVEN: add.u32 %r4, %r1, 1000; st.shared.u32 [%r9], %r4; barrier.sync 0; ld.shared.u32 %r3, [%r7];
JOIN: st.global.u32 [%rd4], %r3;
"""


def test_barriers_that_are_not_aligned_take_the_lanes_of_a_warp_one_by_one(engine: str) -> None:
    found = result(engine, BY_LANES, threads=64, variables=".shared .align 4 .b8 tile[256];")
    assert found == [(thread ^ 5) + (0 if (thread ^ 5) % 2 else 1000) for thread in range(64)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("bar.sync 0, 48;", "multiple of 32"),
        ("bar.sync 0, 96;", "at most the threads"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 1, 32; bra M; L: bar.arrive 1, 64; M:", "different numbers"),
        ("and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra L; barrier.sync 1; L: barrier.sync 2;", "two different barriers"),
    ],
)  # fmt: skip
def test_misused_barriers_are_faults(engine: str, body: str, words: str) -> None:
    with pytest.raises(KernelFault, match=words) as caught:
        result(engine, body, threads=64)
    assert caught.value.fault.kind == "barrier"


# ---- blocks


GRID_BARRIER = """
    bar.sync 0; setp.ne.u32 %p9, %r1, 0; @%p9 bra BEHIND{n};
    membar.gl; atom.global.add.u32 %r20, [lock], 1; mov.u32 %r21, %nctaid.x; mul.lo.u32 %r21, %r21, {n};
WAIT{n}: ld.volatile.global.u32 %r22, [lock]; setp.lt.u32 %p9, %r22, %r21; @%p9 bra WAIT{n};
BEHIND{n}: bar.sync 0;
"""


def test_blocks_wait_for_each_other_at_a_barrier_of_the_grid(engine: str) -> None:
    """Three steps in which each thread takes the value of the next one in the grid."""
    body = "st.global.u32 [%rd4], %r29; mov.u32 %r28, %nctaid.x; mul.lo.u32 %r28, %r28, %r31;\n"
    for step in range(3):
        body += f"""
    {GRID_BARRIER.format(n=2 * step + 1)}
    add.u32 %r2, %r29, 1; rem.u32 %r2, %r2, %r28; mad.wide.u32 %rd5, %r2, 4, %rd1; ld.global.u32 %r3, [%rd5];
    {GRID_BARRIER.format(n=2 * step + 2)}
    st.global.u32 [%rd4], %r3;
"""
    assert result(engine, body, threads=48, grid=5) == [(thread + 3) % 240 for thread in range(240)]


def test_a_chain_of_blocks_each_waits_for_the_one_after_it(engine: str) -> None:
    body = """
    mov.u32 %r5, %nctaid.x; sub.u32 %r5, %r5, 1; sub.u32 %r5, %r5, %r30; setp.ne.u32 %p1, %r1, 0; @%p1 bra BEHIND;
LOOP: ld.volatile.global.u32 %r2, [turn]; setp.ne.u32 %p2, %r2, %r5; @%p2 bra LOOP;
    add.u32 %r3, %r2, 1; st.volatile.global.u32 [turn], %r3;
BEHIND: bar.sync 0; ld.volatile.global.u32 %r2, [turn]; setp.gt.u32 %p1, %r2, %r5; selp.u32 %r2, 1, 0, %p1; st.global.u32 [%rd4], %r2;
"""
    assert result(engine, body, threads=64, grid=6) == [1] * 384


# ---- what never ends


def deadlock(engine: str, body: str, threads: int = 32, grid: int = 1, **more: object) -> KernelFault:
    start = time.monotonic()
    with pytest.raises(KernelFault) as caught:
        result(engine, body, threads, grid, **more)
    assert time.monotonic() - start < 5
    assert caught.value.fault.kind == "deadlock"
    return caught.value


NEVER_SET = "LOOP: ld.volatile.global.u32 %r2, [flag]; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP; st.global.u32 [%rd4], 1;"


@pytest.mark.parametrize("grid", [1, 7])
def test_a_flag_that_nobody_sets_is_a_deadlock(engine: str, grid: int) -> None:
    message = str(deadlock(engine, NEVER_SET, 64, grid))
    assert "warps 0-1 of block (0, 0, 0)" in message and "(in a loop)" in message
    assert ("and 6 more blocks" in message) == (grid == 7)


def test_a_lock_that_its_owner_takes_again_is_a_deadlock(engine: str) -> None:
    take = "atom.global.cas.b32 %r2, [lock], 0, 1; setp.ne.u32 %p1, %r2, 0;"
    deadlock(engine, f"A: {take} @%p1 bra A; B: {take} @%p1 bra B; st.global.u32 [%rd4], 1;")


def test_two_locks_taken_in_different_orders_are_a_deadlock(engine: str) -> None:
    """Each block has one lock when it asks for the other's."""
    body = """
    mov.u64 %rd2, lock; mov.u64 %rd3, total; setp.ne.u32 %p1, %r30, 0; @!%p1 bra A; mov.u64 %rd2, total; mov.u64 %rd3, lock;
A: atom.global.cas.b32 %r2, [%rd2], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra A;
    atom.global.add.u32 %r3, [flag], 1;
BOTH: ld.volatile.global.u32 %r3, [flag]; setp.lt.u32 %p2, %r3, 2; @%p2 bra BOTH;
B: atom.global.cas.b32 %r2, [%rd3], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra B;
    st.global.u32 [%rd4], 1;
"""
    deadlock(engine, body, threads=1, grid=2)


def test_a_grid_that_does_not_fit_deadlocks_at_its_barrier(engine: str) -> None:
    body = GRID_BARRIER.format(n=1) + "st.global.u32 [%rd4], 1;"
    assert result(engine, body, grid=4, options=RunOptions(resident_blocks=4)) == [1] * 128
    assert "1 more blocks can't begin" in str(deadlock(engine, body, grid=4, options=RunOptions(resident_blocks=3)))


def test_a_deadlock_at_barriers_names_them_and_who_arrived(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST; bar.sync 1, 128; bra.uni DONE;
FIRST: bar.sync 0, 64;
DONE:
"""
    message = str(deadlock(engine, body, threads=128))
    assert "warp 0 of block (0, 0, 0)" in message and "(barrier 0, 32 of 64 threads arrived)" in message
    assert "warps 1-3 of block (0, 0, 0)" in message and "(barrier 1, 96 of 128 threads arrived)" in message


def test_lanes_that_wait_for_lanes_at_a_barrier_are_a_deadlock(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
    barrier.sync 3; bra.uni JOIN;
LOW: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
JOIN: st.global.u32 [%rd4], %r2;
"""
    message = str(deadlock(engine, body, threads=64))
    assert "at PTX line 21 (barrier 3, 48 of all threads arrived)" in message
    assert "warp 0 of block (0, 0, 0) at PTX line 22 (for other lanes of the warp)" in message
    assert "never meet those that wait at a barrier" in message


# Each counts its tries, sleeps longer and longer, and looks at the clock.
BACK_OFF = (
    "add.u32 %r8, %r8, 1; nanosleep.u32 %r7; shl.b32 %r7, %r7, 1; mov.u64 %rd6, %globaltimer; add.u64 %rd7, %rd7, %rd6;"
)
INIT = "mov.u32 %r9, bar; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r9], {}; bar.sync 0; mov.u32 %r7, 8;"
BAR = ".shared .align 8 .b64 bar;"


def test_a_barrier_in_shared_memory_that_never_opens_is_a_deadlock(engine: str) -> None:
    body = f"""
    {INIT.format(65)} mbarrier.arrive.shared.b64 %rd5, [%r9];
LOOP: mbarrier.try_wait.shared.b64 %p2, [%r9], %rd5; @%p2 bra OUT;
    {BACK_OFF} bra LOOP;
OUT: st.global.u32 [%rd4], %r8;
"""
    message = str(deadlock(engine, body, threads=64, variables=BAR))
    assert "warps 0-1 of block (0, 0, 0) at PTX line 21 (for a phase of a barrier in shared memory)" in message
    assert "look whether fewer arrive" in message


@pytest.mark.parametrize("grid", [1, 3])
def test_a_flag_that_nobody_sets_is_a_deadlock_however_long_one_sleeps(engine: str, grid: int) -> None:
    body = f"""
    mov.u32 %r7, 8;
LOOP: ld.volatile.global.u32 %r2, [flag]; {BACK_OFF} setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP;
    st.global.u32 [%rd4], %r8;
"""
    assert "(in a loop)" in str(deadlock(engine, body, threads=64, grid=grid))


def test_who_tries_often_and_then_goes_on_releases_the_others(engine: str) -> None:
    """Thread 0 gives up after 300 tries and sets the flag for which all others wait, in another warp and another block too."""
    body = f"""
    mov.u32 %r7, 8; setp.eq.u32 %p3, %r29, 0; @%p3 bra TRY;
LOOP: ld.volatile.global.u32 %r2, [flag]; {BACK_OFF} setp.eq.u32 %p2, %r2, 0; @%p2 bra LOOP; bra.uni OUT;
TRY: ld.volatile.global.u32 %r2, [lock]; {BACK_OFF} setp.ne.u32 %p2, %r2, 0; @%p2 bra SET; setp.lt.u32 %p2, %r8, 300; @%p2 bra TRY;
SET: st.volatile.global.u32 [flag], %r8; mov.u32 %r2, %r8;
OUT: st.global.u32 [%rd4], %r2;
"""
    assert result(engine, body, threads=40, grid=2) == [300] * 80


@pytest.mark.parametrize(
    "arrival",
    [
        "mbarrier.arrive.shared.b64 _, [%r9];",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];",
    ],
)
def test_an_arrival_before_a_wait_is_no_standstill(engine: str, arrival: str) -> None:
    """All warps wait with back-off, each for the arrival of the one after it; the last one arrives first, without a wait."""
    body = f"""
    shr.u32 %r10, %r1, 5; and.b32 %r11, %r1, 31; mov.u32 %r9, bar; mad.lo.u32 %r9, %r10, 16, %r9; mov.u32 %r7, 8;
    setp.eq.u32 %p1, %r11, 0; @%p1 mbarrier.init.shared.b64 [%r9], 32; bar.sync 0;
    setp.eq.u32 %p3, %r10, 3; @%p3 bra ARRIVE;
LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0; @%p2 bra ARRIVE;
    {BACK_OFF} bra LOOP;
ARRIVE: setp.eq.u32 %p3, %r10, 0; @%p3 bra OUT;
    sub.u32 %r9, %r9, 16; {arrival} add.u32 %r9, %r9, 32;
    mov.u32 %r12, bar; setp.eq.u32 %p3, %r10, 1; @%p3 bra OUT;
LAST: mbarrier.try_wait.parity.shared.b64 %p2, [%r12], 0; @%p2 bra OUT;
    {BACK_OFF} bra LAST;
OUT: st.global.u32 [%rd4], %r10;
"""
    found = result(engine, body, threads=128, variables=".shared .align 8 .b8 bar[64];")
    assert found == [warp for warp in range(4) for _ in range(32)]


def test_a_wait_with_a_time_out_ends(engine: str) -> None:
    body = """
    mov.u64 %rd5, %clock64;
LOOP: ld.volatile.global.u32 %r2, [flag]; setp.ne.u32 %p1, %r2, 0; @%p1 bra SEEN;
    mov.u64 %rd6, %globaltimer; sub.u64 %rd6, %rd6, %rd5; setp.lt.u64 %p1, %rd6, 2000; @%p1 bra LOOP;
    st.global.u32 [%rd4], 13;
SEEN:
"""
    assert result(engine, body, threads=64) == [13] * 64
    count = """
    mov.u32 %r3, 0;
LOOP: ld.volatile.global.u32 %r2, [flag]; setp.ne.u32 %p1, %r2, 0; @%p1 bra SEEN;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 100; @%p1 bra LOOP;
SEEN: st.global.u32 [%rd4], %r3;
"""
    assert result(engine, count, threads=64, grid=2) == [100] * 128


# ---- the engines


@pytest.mark.parametrize(
    "body", [LOCK_BEFORE, LOCK_INSIDE, TICKETS, SLEEPING, FLAG, LATE, WARP_BARRIERS, EARLY, HAND_OVER, BY_LANES]
)
def test_every_variant_does_and_counts_the_same(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The general variant alone, and the fast one, which hands over to it."""
    monkeypatch.setitem(ENGINES, "general", functools.partial(compiled.execute, general=True))
    expected, *others = [_run_and_count(engine, body) for engine in ("reference", "compiled", "general")]
    for found in others:
        assert found[0] == expected[0]
        assert not found[1].differences(expected[1])


def _run_and_count(engine: str, body: str) -> tuple[list[int], Counters]:
    threads = 5 if "exch" in body or body is TICKETS else 64
    found = np.zeros(2 * threads, np.uint32)
    text = kernel("u64 a", START + body, module=CELLS, variables=".shared .align 4 .b8 tile[256];")
    return found.tolist(), run(engine, text, found, block=threads, grid=2).counters
