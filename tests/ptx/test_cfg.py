"""Flow graphs: blocks, ranks, liveness, and which blocks only leave."""

from __future__ import annotations

import random

from gpulab.ptx import parse
from gpulab.ptx.cfg import FlowGraph, flow
from gpulab.ptx.inline import inline_calls

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def graph(body: str) -> FlowGraph:
    text = (
        f"{HEADER}.visible .entry k(.param .u64 a) {{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n{body} }}"
    )
    return flow(inline_calls(parse(text), "k"))


def starts(found: FlowGraph) -> list[int]:
    return [block.start for block in found.blocks]


def test_an_if_ranks_its_sides_before_the_join() -> None:
    found = graph("@%p1 bra A; add.s32 %r1, %r1, 1; bra B; A: add.s32 %r1, %r1, 2; B: ret;")
    assert starts(found) == [0, 1, 3, 4]
    assert [block.successors for block in found.blocks] == [(2, 1), (3,), (3,), ()]


def test_a_loop_is_contiguous_and_its_exit_ranks_behind_it() -> None:
    # In the text the exit stands inside the loop, and a cold block behind everything.
    body = """
    HEAD: @%p1 bra COLD; BACK: @%p2 bra HEAD; OUT: ret;
    COLD: add.s32 %r1, %r1, 1; bra BACK;
    """
    found = graph(body)
    assert starts(found) == [0, 3, 1, 2]
    assert found.blocks[0].successors == (1, 2)
    assert found.blocks[2].successors == (0, 3)


def test_loops_nest() -> None:
    body = """
    mov.u32 %r1, 0;
    OUTER: add.s32 %r1, %r1, 1; @%p1 bra AFTER;
    INNER: add.s32 %r2, %r2, 1; @%p2 bra INNER;
    @%p3 bra OUTER;
    AFTER: ret;
    """
    found = graph(body)
    assert [found.blocks[rank].start for rank in range(5)] == [0, 1, 3, 5, 6]
    assert found.blocks[2].successors == (2, 3)


def test_blocks_begin_where_lanes_wait_for_each_other_and_end_behind_barriers() -> None:
    body = """
    add.s32 %r1, %r1, 1; bar.sync 0; bar.warp.sync -1; add.s32 %r1, %r1, 1; barrier.sync 1;
    activemask.b32 %r2; vote.sync.ballot.b32 %r3, %p1, -1; shfl.sync.idx.b32 %r3, %r1, 0, 31, -1; ret;
    """
    found = graph(body)
    assert starts(found) == [0, 1, 2, 4, 5, 6, 7]
    assert [block.meets for block in found.blocks] == [False, True, True, True, False, True, True]


def test_loops_are_found_with_all_their_blocks_outer_ones_first() -> None:
    body = "OUTER: @%p1 bra AFTER; INNER: @%p2 bra INNER; @%p3 bra OUTER; AFTER: ret;"
    assert [(loop.head, set(loop.members)) for loop in graph(body).loops] == [(0, {0, 1, 2}), (1, {1})]


def test_labels_that_nothing_jumps_to_do_not_split_blocks() -> None:
    assert starts(graph("add.s32 %r1, %r1, 1; L: add.s32 %r1, %r1, 1; M: ret;")) == [0]


def test_code_that_nothing_reaches_has_no_block() -> None:
    assert starts(graph("bra L; add.s32 %r1, %r1, 1; L: ret;")) == [0, 2]


def test_guarded_exits_fall_through_and_trap_ends() -> None:
    found = graph("@%p1 exit; @%p2 ret; trap; add.s32 %r1, %r1, 1; ret;")
    assert [block.successors for block in found.blocks] == [(1,), (2,), ()]


def test_a_body_that_runs_off_its_end_returns() -> None:
    found = graph("@%p1 bra END; add.s32 %r1, %r1, 1; END:")
    assert [block.successors for block in found.blocks] == [(2, 1), (2,), ()]
    assert found.blocks[-1].exits_only


def test_blocks_that_only_leave() -> None:
    body = """
    @%p1 bra A; @%p2 bra B; add.s32 %r1, %r1, 1;
    A: bra B;
    B: ret;
    """
    found = graph(body)
    assert [block.exits_only for block in found.blocks] == [False, False, False, True, True]


def test_a_block_with_a_guarded_return_does_more_than_leave() -> None:
    assert [block.exits_only for block in graph("@%p1 bra A; add.s32 %r1, %r1, 1; A: @%p2 ret; st.u32 [%rd1], %r1; ret;").blocks] == [
        False, False, False, False,
    ]  # fmt: skip


def test_liveness_keeps_what_guarded_writes_may_leave() -> None:
    body = """
    mov.u32 %r1, 1; mov.u32 %r2, 2; @%p1 bra A;
    A: @%p2 mov.u32 %r1, 5; mov.u32 %r2, 6; add.s32 %r3, %r1, %r2; st.u32 [%rd1], %r3; ret;
    """
    found = graph(body)
    assert found.blocks[1].live_in == {"%p2", "%r1", "%rd1"}
    assert found.blocks[0].live_in == {"%p1", "%p2", "%rd1"}


def test_liveness_goes_round_loops() -> None:
    found = graph("mov.u32 %r1, 0; L: add.s32 %r1, %r1, %r2; setp.lt.s32 %p1, %r1, 9; @%p1 bra L; ret;")
    assert found.blocks[1].live_in == {"%r1", "%r2"}


def test_the_carry_is_live_between_the_links_of_a_chain() -> None:
    found = graph("add.cc.u32 %r1, %r2, %r3; @%p1 bra L; L: addc.u32 %r4, 0, 0; st.u32 [%rd1], %r4; ret;")
    assert "%carry" in found.blocks[1].live_in


def test_ranks_order_every_edge_but_those_back_to_a_loop() -> None:
    """In random graphs an edge to a lower rank goes to a block that can get back: the head of a loop around it."""
    chooser = random.Random(5)
    for _ in range(60):
        count = chooser.randrange(2, 14)
        lines = [
            f"L{number}: add.s32 %r1, %r1, {number}; @%p{chooser.randrange(9)} bra L{chooser.randrange(count)};"
            for number in range(count)
        ]
        blocks = graph(" ".join(lines) + " ret;").blocks
        assert blocks[0].start == 0
        for block in blocks:
            for target in block.successors:
                if target <= block.rank:
                    assert _reaches(blocks, target, block.rank, set(range(target, len(blocks))))


def _reaches(blocks: tuple, start: int, goal: int, allowed: set[int]) -> bool:
    """Whether a path leads from start to goal through the allowed ranks."""
    seen, waiting = {start}, [start]
    while waiting:
        rank = waiting.pop()
        if rank == goal:
            return True
        new = [each for each in blocks[rank].successors if each in allowed and each not in seen]
        seen.update(new)
        waiting += new
    return False


def test_a_thousand_blocks_in_a_row_and_a_loop_around_them() -> None:
    lines = [f"@%p1 bra L{number}; add.s32 %r1, %r1, 1; L{number}: add.s32 %r2, %r2, 1;" for number in range(1000)]
    found = graph("TOP: add.s32 %r3, %r3, 1; " + " ".join(lines) + " @%p2 bra TOP; ret;")
    assert len(found.blocks) == 2002
    assert starts(found) == sorted(starts(found))
