"""Random programs whose lanes, warps and blocks wait for each other in loops: on every engine, the answer by arithmetic.

A program is a list of stages, which some of the threads pass in order; each stage has cells of its own, in global memory or
in the block's shared memory, and each thread stores what it saw there.
"""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_harness import ENGINES, kernel, run

from gpulab.emulator import RunOptions, compiled

# Blocks and threads: one lane, a part of a warp, two warps, blocks that wait for each other.
SHAPES = [(1, 1), (1, 7), (1, 33), (2, 5), (3, 3), (2, 34)]
STAGE_BYTES = 1024
CHAIN_STEP, PRODUCED = 7, 4711

_waits = st.sampled_from(["plain", "sleep", "count"])
_scopes = st.sampled_from(["global", "shared"])
_who = st.sampled_from(["all", "even", "low", "odd lanes"])
_locks = st.tuples(
    st.sampled_from(["cas", "exch", "inside", "ticket"]),
    _scopes,
    _waits,
    _who,
    st.integers(0, 3),
    st.sampled_from(["st", "atom"]),
)
_chains = st.tuples(st.just("chain"), _scopes, _waits, st.booleans())
_flags = st.tuples(st.just("flag"), _scopes, _waits, st.integers(0, 66))
_programs = st.lists(st.one_of(_locks, _locks, _chains, _flags), min_size=1, max_size=3)

_CONDITIONS = {
    "all": "setp.eq.u32 %p7, %r1, %r1;",
    "even": "and.b32 %r9, %r29, 1; setp.eq.u32 %p7, %r9, 0;",
    "low": "setp.lt.u32 %p7, %r29, 4;",
    "odd lanes": "mov.u32 %r9, %laneid; and.b32 %r9, %r9, 1; setp.eq.u32 %p7, %r9, 1;",
}
_PAUSES = {
    "plain": "",
    "sleep": "nanosleep.u32 %r20; min.u32 %r20, %r20, 64; shl.b32 %r20, %r20, 1;",
    "count": "add.u32 %r20, %r20, 1;",
}


def takes_part(who: str, thread: int, block: int) -> bool:
    """What `_CONDITIONS` say, of a thread's number in the grid."""
    lane = thread % block % 32
    return {"all": True, "even": thread % 2 == 0, "low": thread < 4, "odd lanes": lane % 2 == 1}[who]


def stage_text(number: int, stage: tuple) -> str:
    """One stage: ``%rd4`` is the thread's own place, ``%rd5`` that of the cells (lock, counter, turn; then one for each thread)."""
    kind, space, pause = stage[:3]
    body = {"chain": _chain, "flag": _flag}.get(kind, _lock)(stage)
    cells = f"mov.u64 %rd5, cells_{space}; add.u64 %rd5, %rd5, {STAGE_BYTES * number}; mov.u32 %r20, 8;"
    # Who is asked: the number in the grid, or in the block where the cells are the block's.
    me = "mov.u32 %r21, %r29;" if space == "global" else "mov.u32 %r21, %r1;"
    names = ("LOOP", "AGAIN", "WORK", "HAVE", "DONE", "READ", "LATER")
    text = f"{cells} {me} {body.replace('SPACE', space).replace('PAUSE', _PAUSES[pause])}"
    for name in names:
        text = text.replace(name, f"{name}_{number}")
    return f"{{ {text}\n add.u64 %rd4, %rd4, %rd6; }}"


def _lock(stage: tuple) -> str:
    kind, _, _, who, work, release = stage
    loops = f"mov.u32 %r22, 0; WORK: add.u32 %r22, %r22, 1; setp.le.u32 %p6, %r22, {work}; @%p6 bra WORK;"
    critical = f"""
    ld.SPACE.u32 %r5, [%rd5+4]; {loops} st.global.u32 [%rd4], %r5;
    rem.u32 %r6, %r29, 3; add.u32 %r6, %r6, 1; add.u32 %r5, %r5, %r6; st.SPACE.u32 [%rd5+4], %r5; membar.gl;"""
    free = "atom.SPACE.exch.b32 %r3, [%rd5], 0;" if release == "atom" else "st.volatile.SPACE.u32 [%rd5], 0;"
    take = "atom.SPACE.cas.b32 %r2, [%rd5], 0, 1;" if kind != "exch" else "atom.SPACE.exch.b32 %r2, [%rd5], 1;"
    bodies = {
        "inside": f"""mov.u32 %r7, 0;
LOOP: {take} setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN; {critical} mov.u32 %r7, 1; {free}
AGAIN: PAUSE setp.eq.u32 %p2, %r7, 0; @%p2 bra LOOP;""",
        "ticket": f"""atom.SPACE.add.u32 %r4, [%rd5], 1;
LOOP: ld.volatile.SPACE.u32 %r3, [%rd5+8]; setp.eq.u32 %p1, %r3, %r4; @%p1 bra HAVE; PAUSE bra.uni LOOP;
HAVE: {critical} add.u32 %r3, %r4, 1; st.volatile.SPACE.u32 [%rd5+8], %r3;""",
    }
    plain = f"LOOP: {take} setp.eq.u32 %p1, %r2, 0; @%p1 bra HAVE; PAUSE bra.uni LOOP;\nHAVE: {critical} {free}"
    return f"{_CONDITIONS[who]} @!%p7 bra DONE;\n{bodies.get(kind, plain)}\nDONE:"


def _chain(stage: tuple) -> str:
    """Each thread waits for the one before (or after) it and passes on what it got and a step more."""
    backward = stage[3]
    count = "mov.u32 %r22, %nctaid.x; mul.lo.u32 %r22, %r22, %r31;" if stage[1] == "global" else "mov.u32 %r22, %r31;"
    turned = "sub.u32 %r21, %r22, %r21; sub.u32 %r21, %r21, 1;" if backward else ""
    return f"""
    {count} {turned} mad.wide.u32 %rd7, %r21, 8, %rd5; mov.u32 %r5, 0; setp.eq.u32 %p1, %r21, 0; @%p1 bra HAVE;
LOOP: ld.acquire.gpu.SPACE.u32 %r2, [%rd7+12]; setp.ne.u32 %p1, %r2, 0; @%p1 bra READ; PAUSE bra.uni LOOP;
READ: ld.SPACE.u32 %r5, [%rd7+8];
HAVE: add.u32 %r5, %r5, {CHAIN_STEP}; st.SPACE.u32 [%rd7+16], %r5; membar.gl; st.release.gpu.SPACE.u32 [%rd7+20], 1;
    st.global.u32 [%rd4], %r5;"""


def _flag(stage: tuple) -> str:
    """One thread produces a value, all others wait for it."""
    count = "mov.u32 %r22, %nctaid.x; mul.lo.u32 %r22, %r22, %r31;" if stage[1] == "global" else "mov.u32 %r22, %r31;"
    return f"""
    {count} mov.u32 %r23, {stage[3]}; rem.u32 %r23, %r23, %r22; setp.eq.u32 %p1, %r21, %r23; @!%p1 bra LOOP;
    mov.u32 %r5, {PRODUCED}; st.SPACE.u32 [%rd5+4], %r5; membar.gl; st.volatile.SPACE.u32 [%rd5], 1; bra.uni DONE;
LOOP: ld.volatile.SPACE.u32 %r2, [%rd5]; setp.ne.u32 %p1, %r2, 0; @%p1 bra HAVE; PAUSE bra.uni LOOP;
HAVE: ld.SPACE.u32 %r5, [%rd5+4];
DONE: st.global.u32 [%rd4], %r5;"""


def program_text(program: list[tuple]) -> str:
    size = STAGE_BYTES * len(program)
    start = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r30, %ctaid.x; mov.u32 %r31, %ntid.x;
    mad.lo.u32 %r29, %r30, %r31, %r1; mad.wide.u32 %rd4, %r29, 4, %rd1; mov.u32 %r28, %nctaid.x; mul.lo.u32 %r28, %r28, %r31;
    mul.wide.u32 %rd6, %r28, 4;"""
    body = start + "\n".join(stage_text(*each) for each in enumerate(program))
    module = f".global .align 8 .b8 cells_global[{size}];\n"
    return kernel("u64 a", body, variables=f".shared .align 8 .b8 cells_shared[{size}];", module=module)


def check_stage(stage: tuple, found: list[int], grid: int, block: int) -> None:
    """What each thread of the grid saw in one stage."""
    kind, space = stage[:2]
    groups = [range(grid * block)] if space == "global" else [range(b * block, (b + 1) * block) for b in range(grid)]
    for group in groups:
        saw = [found[thread] for thread in group]
        if kind == "flag":
            assert saw == [PRODUCED] * len(saw)
        elif kind == "chain":
            order = range(1, len(saw) + 1)
            assert saw == [CHAIN_STEP * step for step in (order[::-1] if stage[3] else order)]
        else:
            # One after another: each saw the sum of what those before it had added.
            inside = sorted((found[thread], 1 + thread % 3) for thread in group if takes_part(stage[3], thread, block))
            assert [before for before, _ in inside] == [sum(own for _, own in inside[:n]) for n in range(len(inside))]


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(_programs, st.sampled_from(SHAPES))
def test_random_waits_end_with_the_right_answer(program: list[tuple], shape: tuple[int, int]) -> None:
    grid, block = shape
    text = program_text(program)
    outcomes = []
    for engine in (*ENGINES.values(), functools.partial(compiled.execute, general=True)):
        found = np.zeros((len(program), grid * block), np.uint32)
        done = run(engine, text, found, grid=grid, block=block, options=RunOptions(time_limit_s=60))
        for stage, saw in zip(program, found.tolist(), strict=True):
            check_stage(stage, saw, grid, block)
        outcomes.append((found, done.counters))
    for found, counters in outcomes[1:]:
        assert np.array_equal(found, outcomes[0][0])
        assert not counters.differences(outcomes[0][1])
