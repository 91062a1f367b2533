"""Which loops may wait for other threads."""

from __future__ import annotations

import pytest

from gpulab.emulator import load
from gpulab.ptx import parse

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def awaited(body: str) -> list[str]:
    """The instructions that the loops of a kernel wait for."""
    registers = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .local .b8 slot[8];"
    program = load(parse(f"{HEADER}.visible .entry k(.param .u64 a) {{ {registers}\n{body} }}"), "k")
    return [program.function.instructions[index].text for index in program.spins.values()]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A lock, a flag, a flag behind a fence, a barrier that a clock may end, a value that went through a shuffle.
        ("L: atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;", "atom.cas.b32 %r1, [%rd1], 0, 1"),
        ("L: ld.volatile.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;", "ld.volatile.u32 %r1, [%rd1]"),
        ("L: membar.gl; ld.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;", "ld.u32 %r1, [%rd1]"),
        ("L: ld.acquire.gpu.u32 %r1, [%rd1]; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; setp.eq.u32 %p1, %r2, 0; @%p1 bra L; ret;",
         "ld.acquire.gpu.u32 %r1, [%rd1]"),
        # `done = true` where the lock was had: the exit depends on it by the way, not by the value.
        ("mov.u32 %r2, 0; L: atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra M; mov.u32 %r2, 1;"
         "M: setp.eq.u32 %p2, %r2, 0; @%p2 bra L; ret;", "atom.cas.b32 %r1, [%rd1], 0, 1"),
        # The same through local memory, as unoptimized code has it.
        ("L: atom.cas.b32 %r1, [%rd1], 0, 1; st.local.u32 [slot], %r1; ld.local.u32 %r2, [slot]; setp.ne.u32 %p1, %r2, 0;"
         "@%p1 bra L; ret;", "atom.cas.b32 %r1, [%rd1], 0, 1"),
        ("L: add.u32 %r1, %r1, 1; bra L;", "add.u32 %r1, %r1, 1"),
    ],
)  # fmt: skip
def test_a_loop_that_other_threads_end_spins(body: str, expected: str) -> None:
    assert awaited(body) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L; ret;",
        # A list that nobody changes meanwhile.
        "L: ld.u64 %rd1, [%rd1]; setp.ne.u64 %p1, %rd1, 0; @%p1 bra L; ret;",
        # Atomics in a loop that counts.
        "L: atom.add.u32 %r3, [%rd1], 1; st.u32 [%rd2], %r3; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L; ret;",
        "L: atom.add.u32 %r3, [%rd1], 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra M; st.u32 [%rd2], %r3;"
        "M: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L; ret;",
    ],
)
def test_a_loop_that_ends_by_itself_does_not(body: str) -> None:
    assert awaited(body) == []


def test_of_nested_loops_both_may_wait() -> None:
    body = """
    TRY: ld.volatile.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
    atom.exch.b32 %r2, [%rd1], 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra TRY; ret;
    """
    # One loop with two ways back.
    assert awaited(body) == ["atom.exch.b32 %r2, [%rd1], 1"]


def steady(body: str) -> bool:
    """Whether the one loop of a kernel is ended by memory alone."""
    registers = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .local .b8 slot[8]; .shared .b64 bar;"
    text = f"{HEADER}.extern .func free(.param .b64 x); .visible .entry k(.param .u64 a) {{ {registers}\n{body} }}"
    program = load(parse(text), "k")
    assert len(program.spins) == 1
    return bool(program.steady)


@pytest.mark.parametrize(
    "body",
    [
        "L: atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;",
        # It counts, reads the clock and sleeps longer and longer, but nothing of that decides.
        "L: ld.volatile.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; shl.b32 %r3, %r3, 1; nanosleep.u32 %r3; mov.u64 %rd2, %clock64;"
        "add.u64 %rd3, %rd3, %rd2; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.u32 [%rd1], %r2; ret;",
        "L: mbarrier.try_wait.shared.b64 %p1, [bar], %rd1; add.u32 %r2, %r2, 1; @!%p1 bra L; st.u32 [%rd1], %r2; ret;",
        "mov.u32 %r2, 0; L: atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, 0; @%p1 bra M; mov.u32 %r2, 1;"
        "M: setp.eq.u32 %p2, %r2, 0; @%p2 bra L; ret;",
        # A walk over a list, inside each round.
        "L: mov.u64 %rd2, %rd1; M: ld.volatile.u64 %rd2, [%rd2]; setp.ne.u64 %p1, %rd2, 0; @%p1 bra N; bra L; N: ret;",
    ],
)
def test_a_loop_that_memory_alone_can_end(body: str) -> None:
    assert steady(body)


@pytest.mark.parametrize(
    "body",
    [
        # So many tries; a time; another address each time; a value from the round before; what other lanes say.
        "L: ld.volatile.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra M; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 99;"
        "@%p1 bra L; M: ret;",
        "L: ld.volatile.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra M; mov.u64 %rd2, %globaltimer;"
        "setp.lt.u64 %p1, %rd2, %rd3; @%p1 bra L; M: ret;",
        "L: ld.volatile.u32 %r1, [%rd1]; add.u64 %rd1, %rd1, 4; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;",
        "L: atom.cas.b32 %r1, [%rd1], %r2, 1; setp.ne.u32 %p1, %r1, %r2; mov.u32 %r2, %r1; @%p1 bra L; ret;",
        "L: ld.volatile.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; vote.sync.all.pred %p2, %p1, -1; @%p2 bra L; ret;",
        "L: ld.volatile.u32 %r1, [%rd1]; activemask.b32 %r2; and.b32 %r1, %r1, %r2; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;",
        # It waits for nobody: the time limit ends it, as any other that never ends.
        "L: add.u32 %r1, %r1, 1; bra L;",
        # In the end it reads beyond the array, or asks a function that gives up.
        "L: ld.volatile.u32 %r1, [%rd1]; add.u64 %rd2, %rd2, 4; ld.u32 %r3, [%rd2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;",
        "L: ld.volatile.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.gt.u32 %p2, %r2, 9999; @%p2 st.u32 [%rd4], %r2;"
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;",
        "L: add.u32 %r2, %r2, 1; setp.gt.u32 %p1, %r2, 9999; @%p1 call free, (%rd1); bra L;",
        # The number of tries in local memory; a load that only some rounds make.
        "L: ld.local.u32 %r2, [slot]; add.u32 %r2, %r2, 1; st.local.u32 [slot], %r2; atom.cas.b32 %r1, [%rd1], 0, 1;"
        "add.u32 %r1, %r1, %r2; setp.ne.u32 %p1, %r1, 99; @%p1 bra L; ret;",
        "L: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra M; ld.volatile.u32 %r1, [%rd1]; M: setp.eq.u32 %p1, %r1, 0;"
        "@%p1 bra L; ret;",
    ],
)
def test_a_loop_that_may_end_by_itself_is_not_steady(body: str) -> None:
    assert not steady(body)
