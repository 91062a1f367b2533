"""Traces of kernels, worked by hand."""

from __future__ import annotations

import numpy as np
from ptx_harness import kernel, run

from gpulab.emulator import RunOptions
from gpulab.trace import ATOMIC, LOAD, STORE, Tracing

COPY = """
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r1, %r2, 64, %r1; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
    ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd2+16], %r3; red.global.add.u32 [%rd2+16], %r3;
"""


def test_a_copy_has_an_event_for_each_line_of_each_warp(engine: str) -> None:
    source, target = np.arange(256, dtype=np.uint32), np.zeros(260, np.uint32)
    options = RunOptions(tracing=Tracing(near=(1, 3)))
    ran = run(engine, kernel("u64 a, u64 b", COPY), source, target, grid=4, block=64, options=options)
    found = ran.counters.trace
    assert found is not None
    first = [allocation.address >> 7 for allocation in ran.memory.allocations.values()]
    names = ("block", "time", "warp", "instruction", "line", "sectors", "kind", "count")
    expected = [
        (block, time, warp, time, first[array] + 2 * block + warp + step, sectors, kind, 1)
        for block in (1, 3)
        for time, array, kind, parts in (
            (8, 0, LOAD, [(0, 15)]),
            (9, 1, STORE, [(0, 15), (1, 1)]),
            (10, 1, ATOMIC, [(0, 15), (1, 1)]),
        )
        for warp in (0, 1)
        for step, sectors in parts
    ]
    assert [tuple(int(event[name]) for name in names) for event in found.near.events] == expected
    # Of the far sample: two warps of a block share a line of the second array.
    assert len(found.far.events) == 4 * (2 + 3 + 3)
    assert found.near.blocks is not None and found.near.blocks.tolist() == [1, 3] and found.far.blocks is None
