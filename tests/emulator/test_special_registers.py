"""Every special register of the PTX manual's chapter 10, in a launch of two by one blocks of 40 threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.ptx.operands import SPECIALS

THREADS, SHARED = 40, 100
WIDE = ("%clock64", "%globaltimer", "%gridid", "%current_graph_exec")
CLOCKS = ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi")


def _low_mask(lane: int) -> int:
    return (1 << lane) - 1


# What a thread of a block reads; everything else is 0 in a launch without clusters, graphs and counters.
EXPECTED: dict[str, Callable[[int, int], int]] = {
    "%tid.x": lambda block, thread: thread,
    "%ntid.x": lambda block, thread: THREADS,
    "%ntid.y": lambda block, thread: 1,
    "%ntid.z": lambda block, thread: 1,
    "%ctaid.x": lambda block, thread: block,
    "%nctaid.x": lambda block, thread: 2,
    "%nctaid.y": lambda block, thread: 1,
    "%nctaid.z": lambda block, thread: 1,
    "%clusterid.x": lambda block, thread: block,
    "%nclusterid.x": lambda block, thread: 2,
    "%nclusterid.y": lambda block, thread: 1,
    "%nclusterid.z": lambda block, thread: 1,
    "%cluster_nctaid.x": lambda block, thread: 1,
    "%cluster_nctaid.y": lambda block, thread: 1,
    "%cluster_nctaid.z": lambda block, thread: 1,
    "%cluster_nctarank": lambda block, thread: 1,
    "%laneid": lambda block, thread: thread % 32,
    "%warpid": lambda block, thread: thread // 32,
    "%nwarpid": lambda block, thread: 2,
    "%nsmid": lambda block, thread: 1,
    "%lanemask_eq": lambda block, thread: 1 << thread % 32,
    "%lanemask_lt": lambda block, thread: _low_mask(thread % 32),
    "%lanemask_le": lambda block, thread: _low_mask(thread % 32 + 1),
    "%lanemask_ge": lambda block, thread: 0xFFFFFFFF & ~_low_mask(thread % 32),
    "%lanemask_gt": lambda block, thread: 0xFFFFFFFF & ~_low_mask(thread % 32 + 1),
    "%dynamic_smem_size": lambda block, thread: SHARED,
    "%total_smem_size": lambda block, thread: SHARED,
}


def _read(engine: str, names: list[str]) -> dict[str, np.ndarray]:
    """The registers as every thread sees them, shape (blocks, threads)."""
    body = f"""ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, {THREADS}, %r2;
    mad.wide.u32 %rd1, %r1, {8 * len(names)}, %rd1;\n"""
    for place, name in enumerate(names):
        if name in WIDE or name.endswith("_64"):
            body += f"mov.u64 %rd2, {name};"
        elif name == "%is_explicit_cluster":
            body += f"mov.pred %p1, {name}; selp.b64 %rd2, 1, 0, %p1;"
        else:
            body += f"mov.u32 %r3, {name}; cvt.u64.u32 %rd2, %r3;"
        body += f" st.global.u64 [%rd1+{8 * place}], %rd2;\n"
    found = np.full((2, THREADS, len(names)), 99, np.uint64)
    run(engine, kernel("u64 out", body), found, grid=2, block=THREADS, shared=SHARED)
    return {name: found[:, :, place] for place, name in enumerate(names)}


def test_each_has_its_value(engine: str) -> None:
    # What the system reserves of shared memory has tests of its own, with the groups that use it.
    names = [name for name in SPECIALS if name not in CLOCKS and not name.startswith("%reserved")]
    for name, values in _read(engine, names).items():
        wanted = EXPECTED.get(name, lambda block, thread: 0)
        expected = [[wanted(block, thread) for thread in range(THREADS)] for block in range(2)]
        assert values.tolist() == expected, name


@pytest.mark.parametrize("name", ["%clock", "%clock64", "%globaltimer", "%globaltimer_lo"])
def test_clocks_go_forward(engine: str, name: str) -> None:
    width, register = (64, "%rd") if name in WIDE else (32, "%r")
    body = f"""ld.param.u64 %rd1, [out]; mov.u{width} {register}4, {name}; add.f32 %f1, %f2, %f3; bar.sync 0; mov.u{width} {register}5, {name};
    sub.u{width} {register}6, {register}5, {register}4; setp.gt.u{width} %p1, {register}6, 0; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%rd1], %r1;"""
    found = np.zeros(1, np.uint32)
    run(engine, kernel("u64 out", body), found)
    assert found[0] == 1
