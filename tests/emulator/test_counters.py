"""Counters on every engine: hand-worked requests, and what was measured on hardware or is documented by NVIDIA."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import Run, kernel, run

from gpulab.emulator import RunOptions


def strided_load(engine: str, stride: int, size: int, *, threads: int = 32, offset: int = 0, modulo: int = 0) -> Run:
    """Each thread loads its element of a stride in elements."""
    modulo_code = f"rem.u32 %r1, %r1, {modulo};" if modulo else ""
    body = f"""
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; {modulo_code}
    mul.lo.u32 %r1, %r1, {stride * size}; cvt.u64.u32 %rd2, %r1; add.s64 %rd2, %rd1, %rd2;
    ld.global.b{8 * size} {"%r2" if size == 4 else "%rd3"}, [%rd2+{offset}];
"""
    return run(
        engine,
        kernel("u64 a", body),
        np.zeros(max(threads * max(stride, 1), 64) * size + 4096, np.uint8),
        block=threads,
    )


# CUDA C++ Best Practices Guide, coalesced access: sectors of one warp that loads 32 x 4 bytes.
@pytest.mark.parametrize(
    ("stride", "offset", "sectors"), [(1, 0, 4), (1, 4, 5), (2, 0, 8), (8, 0, 32), (16, 0, 32), (0, 0, 1), (1, 128, 4)]
)
def test_documented_sectors_of_a_strided_load(engine: str, stride: int, offset: int, sectors: int) -> None:
    ran = strided_load(engine, stride, 4, offset=offset)
    assert ran.count("sectors", "ld")[-1] == sectors
    assert ran.count("requests", "ld")[-1] == 1
    assert ran.count("sectors_ideal", "ld")[-1] == 4
    assert ran.count("bytes_asked", "ld")[-1] == 128


# NVIDIA forum 312884: all threads off 0, one thread 1, 32 threads in 32 lines 32.
@pytest.mark.parametrize(("threads_on", "sectors", "requests"), [(0, 0, 0), (1, 1, 1), (32, 32, 1)])
def test_sectors_count_lanes_that_are_on(engine: str, threads_on: int, sectors: int, requests: int) -> None:
    body = f"""
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 128, %rd1;
    setp.lt.u32 %p1, %r1, {threads_on}; @%p1 ld.global.u32 %r2, [%rd2];
"""
    ran = run(engine, kernel("u64 a", body), np.zeros(4096, np.uint8))
    assert ran.count("sectors", "ld")[-1] == ran.count("lines", "ld")[-1] == sectors
    assert ran.count("requests", "ld")[-1] == requests
    assert ran.count("warp_instructions", "ld")[-1] == 1
    assert ran.count("thread_instructions", "ld")[-1] == 32
    assert ran.count("thread_instructions_pred_on", "ld")[-1] == threads_on


# te42kyfo/gpu-benches, gpu-strides, measured on A100, A40 and H200: data wavefronts of a request that hits L1. Each warp
# of a block of 1,024 threads loads A[(tid % 64) * stride].
_FLOAT_WAVEFRONTS = {
    **dict.fromkeys((0, 1, 3, 5, 31, 33), 1),
    **dict.fromkeys((2, 6), 2),
    **dict.fromkeys((4, 12), 4),
    **dict.fromkeys((8, 24), 8),
    **dict.fromkeys((16, 48), 16),
    **dict.fromkeys((32, 64), 32),
}
_DOUBLE_WAVEFRONTS = {1: 2, 2: 4, 3: 2, 4: 8, 8: 16, 16: 32}


@pytest.mark.parametrize(
    ("size", "stride", "wavefronts"),
    [(4, *pair) for pair in _FLOAT_WAVEFRONTS.items()] + [(8, *pair) for pair in _DOUBLE_WAVEFRONTS.items()],
)
def test_measured_wavefronts_of_strided_loads(engine: str, size: int, stride: int, wavefronts: int) -> None:
    ran = strided_load(engine, stride, size, threads=128, modulo=64)
    assert ran.count("wavefronts", "ld")[-1] == 4 * wavefronts
    assert ran.count("requests", "ld")[-1] == 4
    assert ran.count("wavefronts_ideal", "ld")[-1] == 4 * size // 4


# NVIDIA forum 359822 (LDS.128: 4 wavefronts clean, 32 with 28 conflicts), OLCF's transpose (doubles by columns: 32 and 30).
@pytest.mark.parametrize(
    ("access", "stride_bytes", "wavefronts", "ideal"),
    [
        ("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}", 16, 4, 4),
        ("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}", 128, 32, 4),
        ("ld.shared.u64 %rd3", 8, 2, 2),
        ("ld.shared.u64 %rd3", 256, 32, 2),
        ("ld.shared.u64 %rd3", 264, 2, 2),
        ("ld.shared.u32 %r2", 4, 1, 1),
        ("ld.shared.u32 %r2", 128, 32, 1),
        ("ld.shared.u32 %r2", 132, 1, 1),
        ("ld.shared.u32 %r2", 0, 1, 1),
        ("ld.shared.u8 %r2", 1, 1, 1),
        ("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}", 0, 4, 4),
    ],
)
def test_bank_conflicts_of_shared_loads(
    engine: str, access: str, stride_bytes: int, wavefronts: int, ideal: int
) -> None:
    body = f"""
    mov.u32 %r1, %tid.x; mov.u32 %r6, tile; mad.lo.u32 %r7, %r1, {stride_bytes}, %r6; {access}, [%r7];
"""
    ran = run(engine, kernel("", body, variables=".shared .align 16 .b8 tile[8448];"))
    assert ran.count("wavefronts", "ld") == [wavefronts]
    assert ran.count("wavefronts_ideal", "ld") == [ideal]
    assert ran.count("sectors", "ld") == ran.count("lines", "ld") == [0]


@pytest.mark.parametrize(("size", "sectors"), [(1, 4), (2, 4), (4, 4), (8, 8), (16, 16)])
def test_local_memory_is_interleaved_by_lane(engine: str, size: int, sectors: int) -> None:
    loads = {1: "u8 %r2", 2: "u16 %r2", 4: "u32 %r2", 8: "u64 %rd3", 16: "v4.u32 {%r2, %r3, %r4, %r5}"}
    body = f"mov.u64 %rd1, mine; ld.local.{loads[size]}, [%rd1+16];"
    ran = run(engine, kernel("", body, variables=".local .align 16 .b8 mine[64];"))
    assert ran.count("sectors", "ld") == [sectors]
    assert ran.count("lines", "ld") == [max(size // 4, 1)]
    assert ran.count("wavefronts", "ld") == ran.count("wavefronts_ideal", "ld") == [max(size // 4, 1)]
    assert ran.counters.l1_miss_sectors.sum() == 0
    assert ran.counters.footprint_sectors == 0


def test_local_memory_at_different_places_is_not_coalesced(engine: str) -> None:
    body = "mov.u64 %rd1, mine; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.local.u32 %r2, [%rd1];"
    ran = run(engine, kernel("", body, variables=".local .align 16 .b8 mine[128];"))
    assert ran.count("sectors", "ld") == ran.count("lines", "ld") == [32]


def test_parameters_and_constants_are_no_requests(engine: str) -> None:
    body = "ld.param.u64 %rd1, [a]; mov.u64 %rd2, c; ld.const.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1;"
    ran = run(engine, kernel("u64 a", body, module=".const .u32 c = 5;"), np.zeros(1, np.uint32))
    assert ran.count("requests", "ld") == [0, 0]
    assert ran.count("requests", "st") == [1]
    assert ran.counters.distinct_sectors_read == 0
    assert ran.counters.distinct_sectors_written == 1


# ---- instructions and branches


def test_divergence_is_counted_where_targets_differ(engine: str) -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 40; @%p1 bra NEAR;
    add.u32 %r2, %r1, 1;
NEAR:
    setp.lt.u32 %p2, %r1, 64; @%p2 bra ALL;
ALL:
    setp.gt.u32 %p3, %r1, 200; @%p3 bra NONE;
    add.u32 %r2, %r1, 2;
NONE:
"""
    ran = run(engine, kernel("", body), block=64)
    # Only the second warp parts at the first branch; the second branch has one target either way.
    assert ran.count("divergent_branches", "bra") == [1, 0, 0]
    assert ran.count("warp_instructions", "bra") == [2, 2, 2]
    assert ran.count("thread_instructions_pred_on", "bra") == [40, 64, 0]
    assert ran.count("warp_instructions", "add") == [1, 2]
    assert ran.count("thread_instructions", "add") == [24, 64]


def test_loops_count_every_round_and_lane(engine: str) -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
LOOP:
    add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra LOOP;
"""
    ran = run(engine, kernel("", body), grid=3)
    assert ran.count("warp_instructions", "add") == [3 * 32]
    assert ran.count("thread_instructions", "add") == [3 * sum(range(1, 33))]
    assert ran.count("divergent_branches", "bra") == [3 * 31]
    assert (ran.counters.blocks, ran.counters.warps, ran.counters.threads) == (3, 3, 96)


# ---- what the launch touched, and the modeled L1


def test_distinct_sectors_read_and_written(engine: str) -> None:
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 16, %r2;
    mad.wide.u32 %rd2, %r3, 4, %rd1; ld.global.u32 %r4, [%rd2]; st.global.u32 [%rd2+1024], %r4;
    red.global.add.u32 [%rd1+4096], 1;
"""
    ran = run(engine, kernel("u64 a", body), np.zeros(2048, np.uint32), grid=4)
    # Blocks overlap by half: 16 * 3 + 32 elements are 320 bytes, 10 sectors each way; the atomic touches one both ways.
    assert ran.counters.distinct_sectors_read == 11
    assert ran.counters.distinct_sectors_written == 11
    assert ran.counters.footprint_sectors == 21


def test_an_l1_of_each_block_misses_each_sector_once(engine: str) -> None:
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd2]; ld.global.u32 %r4, [%rd2+32];
    st.global.u32 [%rd2], %r4; ld.volatile.global.u32 %r5, [%rd2];
"""
    ran = run(engine, kernel("u64 a", body), np.zeros(256, np.uint32), grid=2, block=64)
    # Warp 0 misses sectors 0 to 3, then 4 by its third load. Warp 1 finds 4, misses 5 to 7, then 8. In both blocks alike.
    assert ran.count("l1_miss_sectors", "ld")[1:] == [2 * 7, 0, 2 * 2, 0]
    assert ran.count("sectors", "ld")[1:] == [16, 16, 16, 16]
    assert ran.count("l1_miss_sectors", "st") == [0]


def test_a_set_of_the_l1_keeps_the_four_sectors_that_came_last(engine: str) -> None:
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 253; mad.wide.u32 %rd2, %r2, 128, %rd1;
    ld.global.u32 %r3, [%rd2]; ld.global.u32 %r3, [%rd2]; ld.global.u32 %r3, [%rd2]; ld.global.u32 %r3, [%rd2+32];
"""
    ran = run(engine, kernel("u64 a", body), np.zeros(1400 * 32, np.uint32), block=5)
    # Lines 0, 253, 506, 759 and 1012 share a set, for 253 * (1 + 3 / 256) is all but 256. A request is looked up as a whole:
    # first all five miss and the first goes; then it is the only one that misses, and the next goes.
    assert ran.count("l1_miss_sectors", "ld")[1:] == [5, 1, 1, 5]


def test_counting_can_be_left_out(engine: str) -> None:
    body = "ld.param.u64 %rd1, [a]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4], 5;"
    found = np.zeros(2, np.uint32)
    ran = run(engine, kernel("u64 a", body), found, grid=2, options=RunOptions(count=False))
    assert found[1] == 5
    assert ran.counters.warp_instructions.sum() == ran.counters.sectors.sum() == 0
    assert ran.counters.blocks == 2


def test_chosen_blocks_run_and_no_others(engine: str) -> None:
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %ctaid.x; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r3, 4, %r1;
    mad.wide.u32 %rd2, %r1, 4, %rd1; add.u32 %r2, %r1, 1; st.global.u32 [%rd2], %r2;
"""
    found = np.zeros(8, np.uint32)
    ran = run(engine, kernel("u64 a", body), found, grid=(4, 2), options=RunOptions(blocks=[1, 4, 7]))
    assert found.tolist() == [0, 2, 0, 0, 5, 0, 0, 8]
    assert ran.counters.sampled_blocks == ran.counters.blocks == 3
