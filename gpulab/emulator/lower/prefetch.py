"""Prefetching: what the same warp of the next block will most likely access is asked for early.

A warp that only moves data waits for memory in each of its few requests, and no processor looks far enough ahead to see
the next warp's. Between two blocks, though, the addresses of a warp move by as much for each of its warps. So the first
warp of each block notes how far it is from where it was in the block before, and every warp prefetches that much further
on. Requests in loops are left to the processor, which sees their next rounds itself. A prefetch never faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value
from gpulab.emulator.lower.affine import row_pointer
from gpulab.emulator.lower.values import Affine, State
from gpulab.emulator.native import touch
from gpulab.models.access import LINE_BYTES

if TYPE_CHECKING:
    from gpulab.emulator.lower.access import Access

_HOST_LINE_BYTES = 64


def prefetch(state: State, access: Access, kind: str, pointer: Value) -> None:
    """Prefetch for a request whose lanes are neighbors, all of them (`kind` ``contiguous``) or row by row (``rows``).

    Parameters
    ----------
    pointer : Value
        Host address of lane 0.
    """
    in_loop = state.program.graph.in_loop(state.block.rank)
    if access.space != "global" or kind not in ("contiguous", "rows") or in_loop:
        return
    assert isinstance(access.address, Affine)
    width = layout.WARP if kind == "contiguous" else state.plan.block_shape.width
    distance = _distance(state, pointer)
    state.b.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    for row in range(layout.WARP // width):
        ahead = state.b.offset(row_pointer(state, access.address, pointer, row), distance)
        # Of very wide requests the beginning is enough: the processor sees how they go on.
        for start in range(0, min(width * access.size, 2 * LINE_BYTES), _HOST_LINE_BYTES):
            # Where arrays begin in the middle of a line, the last byte is in the one that nobody has asked for yet.
            last = min(start + _HOST_LINE_BYTES, width * access.size) - 1
            _ask_for(state, state.b.offset(ahead, last), bool(access.flags & layout.STORE))


def _distance(state: State, pointer: Value) -> Value:
    """Bytes by which this request moved from the last block to this one."""
    b = state.b
    words = b.offset(state.constant_get("memory_counters", "ptr"), touch.WORD_BYTES * state.index)
    last, moved = (b.offset(words, 8 * word) for word in (touch.LAST, touch.MOVED))
    with b.if_(b.is_("eq", layout.frame_get(b, state.frame, "index"), 0)):
        here = b.cast("ptrtoint", pointer, "i64")
        b.store(b.sub(here, b.load("i64", last)), moved)
        b.store(here, last)
    return b.load("i64", moved)


def _ask_for(state: State, place: Value, writes: bool) -> None:
    """Into the second cache: rows that lie a power of two apart would push each other out of the first."""
    state.b.emit(f"call void @llvm.prefetch.p0({place.ir}, i32 {int(writes)}, i32 2, i32 1)")
