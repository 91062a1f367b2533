"""Shuffles, votes, matches, reductions and their member masks on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.errors import KernelFault

START = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %laneid; mad.wide.u32 %rd4, %r1, 4, %rd1;
"""


def results(engine: str, body: str, count: int = 1, **launch: object) -> np.ndarray:
    """Run a body that stores its result number i at ``[%rd4 + 128 * i]``; shape (count, 32)."""
    found = np.zeros((count, 32), np.uint32)
    run(engine, kernel("u64 a", START + body), found, **launch)
    return found


def shuffle(mode: str, distance: str, clamp: int) -> str:
    return f"""
    add.u32 %r2, %r1, 100; shfl.sync.{mode}.b32 %r3|%p1, %r2, {distance}, {clamp}, -1;
    selp.u32 %r4, 1, 0, %p1; st.global.u32 [%rd4], %r3; st.global.u32 [%rd4+128], %r4;
"""


# Width 32: clamp 31, or 0 for `up`. Width 8: the segment mask 24 in bits 8 to 12.
_SHUFFLES = {
    "down 3": ("down", "3", 31, [(lane + 3, 1) if lane + 3 < 32 else (lane, 0) for lane in range(32)]),
    "down 2 of 8": ("down", "2", 0x181F, [(lane + 2, 1) if lane % 8 < 6 else (lane, 0) for lane in range(32)]),
    "up 5": ("up", "5", 0, [(lane - 5, 1) if lane >= 5 else (lane, 0) for lane in range(32)]),
    "up 1 of 8": ("up", "1", 0x1800, [(lane - 1, 1) if lane % 8 else (lane, 0) for lane in range(32)]),
    "bfly 16": ("bfly", "16", 31, [(lane ^ 16, 1) for lane in range(32)]),
    "bfly 9 of 8": ("bfly", "9", 0x181F, [(lane ^ 9, 1) if lane ^ 9 <= lane | 7 else (lane, 0) for lane in range(32)]),
    "idx 7": ("idx", "7", 31, [(7, 1) for lane in range(32)]),
    "idx 13 of 8": ("idx", "13", 0x181F, [(lane // 8 * 8 + 5, 1) for lane in range(32)]),
    "idx by lane": ("idx", "%r5", 31, [(31 - lane, 1) for lane in range(32)]),
    "idx behind the clamp": ("idx", "7", 3, [(lane, 0) if lane < 32 else None for lane in range(32)]),
    "distances above 31": ("down", "33", 31, [(lane + 1, 1) if lane < 31 else (lane, 0) for lane in range(32)]),
}


@pytest.mark.parametrize("name", _SHUFFLES)
def test_shuffle_reads_the_lane_and_writes_its_predicate(engine: str, name: str) -> None:
    mode, distance, clamp, expected = _SHUFFLES[name]
    value, valid = results(engine, "xor.b32 %r5, %r1, 31;" + shuffle(mode, distance, clamp), 2)
    assert list(zip(value.tolist(), valid.tolist(), strict=True)) == [(100 + lane, ok) for lane, ok in expected]


def test_a_shuffle_from_a_lane_that_is_away_gives_the_own_value(engine: str) -> None:
    body = """
    setp.ge.u32 %p1, %r1, 20; @%p1 bra DONE;
    shfl.sync.down.b32 %r2|%p2, %r1, 4, 31, 0xFFFFF; selp.u32 %r3, 100, 0, %p2; add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd4], %r2;
DONE:
"""
    assert (
        results(engine, body)[0].tolist() == [lane + 104 if lane < 16 else lane + 100 for lane in range(20)] + [0] * 12
    )


def test_votes_look_at_the_members_only(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 5; setp.lt.u32 %p2, %r1, 32;
    vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd4], %r2;
    vote.sync.all.pred %p3, %p1, -1; vote.sync.any.pred %p4, %p1, -1; vote.sync.uni.pred %p5, %p1, -1;
    vote.sync.all.pred %p6, %p2, -1; vote.sync.uni.pred %p7, %p2, -1; vote.sync.any.pred %p8, !%p2, -1;
    selp.u32 %r3, 1, 0, %p3; selp.u32 %r4, 2, 0, %p4; selp.u32 %r5, 4, 0, %p5; selp.u32 %r6, 8, 0, %p6;
    selp.u32 %r7, 16, 0, %p7; selp.u32 %r8, 32, 0, %p8;
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7; add.u32 %r3, %r3, %r8;
    st.global.u32 [%rd4+128], %r3;
"""
    ballot, bits = results(engine, body, 2)
    assert set(ballot.tolist()) == {0x1F}
    assert set(bits.tolist()) == {2 + 8 + 16}


def test_halves_of_a_warp_may_vote_under_different_masks(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 16; selp.b32 %r2, 0xFFFF, 0xFFFF0000, %p1; and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 1;
    vote.sync.ballot.b32 %r4, %p2, %r2; st.global.u32 [%rd4], %r4;
    redux.sync.add.u32 %r5, %r1, %r2; st.global.u32 [%rd4+128], %r5;
    match.any.sync.b32 %r6, %r3, %r2; st.global.u32 [%rd4+256], %r6;
"""
    ballot, total, same = results(engine, body, 3)
    assert ballot.tolist() == [0xAAAA] * 16 + [0xAAAA0000] * 16
    assert total.tolist() == [120] * 16 + [376] * 16
    assert same.tolist() == [0x5555, 0xAAAA] * 8 + [0x55550000, 0xAAAA0000] * 8


def test_match_finds_equal_values(engine: str) -> None:
    body = """
    shr.u32 %r2, %r1, 3; match.any.sync.b32 %r3, %r2, -1; st.global.u32 [%rd4], %r3;
    cvt.u64.u32 %rd5, %r2; shl.b64 %rd5, %rd5, 40; match.any.sync.b64 %r4, %rd5, -1; st.global.u32 [%rd4+128], %r4;
    match.all.sync.b32 %r5|%p1, %r2, -1; selp.u32 %r6, 1, 0, %p1; add.u32 %r5, %r5, %r6; st.global.u32 [%rd4+256], %r5;
    mov.u32 %r7, 9; match.all.sync.b32 %r5|%p1, %r7, -1; selp.u32 %r6, %r5, 0, %p1; st.global.u32 [%rd4+384], %r6;
"""
    any32, any64, differ, equal = results(engine, body, 4)
    groups = [0xFF << 8 * (lane // 8) for lane in range(32)]
    assert any32.tolist() == any64.tolist() == groups
    assert set(differ.tolist()) == {0}
    assert set(equal.tolist()) == {0xFFFFFFFF}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add.s32", 2**32 - 16), ("min.s32", 2**32 - 16), ("max.s32", 15), ("min.u32", 0), ("max.u32", 2**32 - 1),
     ("and.b32", 0), ("or.b32", 2**32 - 1), ("xor.b32", 0)],
)  # fmt: skip
def test_redux_combines_all_lanes(engine: str, operation: str, expected: int) -> None:
    body = f"sub.s32 %r2, %r1, 16; redux.sync.{operation} %r3, %r2, -1; st.global.u32 [%rd4], %r3;"
    assert set(results(engine, body)[0].tolist()) == {expected}


def test_activemask_and_elect_see_the_lanes_that_are_here(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 3; @%p1 bra DONE;
    activemask.b32 %r2; st.global.u32 [%rd4], %r2;
    elect.sync %r3|%p2, %r2; selp.u32 %r4, 100, 0, %p2; add.u32 %r4, %r4, %r3; st.global.u32 [%rd4+128], %r4;
DONE:
"""
    active, leader = results(engine, body, 2)
    assert active.tolist() == [0] * 3 + [0xFFFFFFF8] * 29
    assert leader.tolist() == [0] * 3 + [103] + [3] * 28


def test_lane_masks_and_numbers(engine: str) -> None:
    body = """
    mov.u32 %r2, %lanemask_eq; mov.u32 %r3, %lanemask_lt; mov.u32 %r4, %lanemask_le; mov.u32 %r5, %lanemask_gt; mov.u32 %r6, %lanemask_ge;
    st.global.u32 [%rd4], %r2; st.global.u32 [%rd4+128], %r3; st.global.u32 [%rd4+256], %r4;
    st.global.u32 [%rd4+384], %r5; st.global.u32 [%rd4+512], %r6;
"""
    equal, below, to_here, above, from_here = results(engine, body, 5)
    everything = 0xFFFFFFFF
    for lane in range(32):
        assert equal[lane] == 1 << lane
        assert below[lane] == (1 << lane) - 1
        assert to_here[lane] == (2 << lane) - 1
        assert above[lane] == everything & ~((2 << lane) - 1)
        assert from_here[lane] == everything & ~((1 << lane) - 1)


# ---- member masks

_EXIT_EARLY = "setp.ge.u32 %p1, %r1, 20; @%p1 bra DONE; {} st.global.u32 [%rd4], %r2; DONE:"


@pytest.mark.parametrize(
    "operation",
    [
        "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;",
        "redux.sync.add.u32 %r2, %r1, -1;",
        "bar.warp.sync -1; mov.u32 %r2, 190;",
    ],
)
def test_lanes_that_only_return_may_be_named_in_the_mask(engine: str, operation: str) -> None:
    found = results(engine, _EXIT_EARLY.format(operation))[0]
    assert set(found[:20].tolist()) == ({0} if "shfl" in operation else {190})


@pytest.mark.parametrize(
    "operation",
    ["shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;", "vote.sync.ballot.b32 %r2, %p1, -1;", "match.any.sync.b32 %r2, %r1, -1;",
     "redux.sync.add.u32 %r2, %r1, -1;", "bar.warp.sync -1;"],
)  # fmt: skip
def test_a_named_lane_that_is_elsewhere_is_a_fault(engine: str, operation: str) -> None:
    body = f"setp.ge.u32 %p1, %r1, 20; @%p1 bra ELSE; {operation} bra.uni DONE; ELSE: st.global.u32 [%rd4], %r1; DONE:"
    body += " st.global.u32 [%rd4], %r1;"
    with pytest.raises(KernelFault) as caught:
        results(engine, body)
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("warp-sync", (0, 0, 0))


def test_a_lane_must_be_in_its_own_mask(engine: str) -> None:
    with pytest.raises(KernelFault) as caught:
        results(engine, "vote.sync.ballot.b32 %r2, %p1, 0xFF;")
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("warp-sync", (8, 0, 0))


def test_both_sides_of_a_branch_may_synchronize_their_own_lanes(engine: str) -> None:
    body = """
    setp.ge.u32 %p1, %r1, 20; @%p1 bra ELSE;
    redux.sync.add.u32 %r2, %r1, 0xFFFFF; bra.uni JOIN;
ELSE:
    redux.sync.max.u32 %r2, %r1, 0xFFF00000;
JOIN:
    redux.sync.min.u32 %r3, %r2, -1; mad.lo.u32 %r2, %r3, 1000, %r2; st.global.u32 [%rd4], %r2;
"""
    assert results(engine, body)[0].tolist() == [31190] * 20 + [31031] * 12
