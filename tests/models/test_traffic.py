"""L2 and DRAM traffic of hand-made launches: exact where nothing is used twice, between honest bounds where it is."""

from __future__ import annotations

import pytest

from gpulab.gpus import gpu
from gpulab.models.run import KernelRun
from gpulab.models.traffic import Traffic, traffic

T4, A100 = gpu("T4"), gpu("A100")
BODY = "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; red.global.add.f32 [%rd3], %f1; ret;"


def moved(run: KernelRun, name: str = "A100") -> Traffic:
    spec = gpu(name)
    return traffic(run, spec, run.occupancy(spec))


def test_a_stream_moves_each_sector_once(make_run) -> None:
    counts = {0: {"sectors": 400, "l1_miss_sectors": 400}, 1: {"sectors": 400, "bytes_asked": 12_800}}
    found = moved(
        make_run(BODY, counts, distinct_sectors_read=400, distinct_sectors_written=400, footprint_sectors=800)
    )
    assert (found.l2_read, found.l2_write, found.l2_write_partial, found.l2) == (400, 400, 0, 800)
    assert (found.dram.low, found.dram.value, found.dram.high) == (800, 800, 800)


def test_what_l1_keeps_does_not_reach_l2(make_run) -> None:
    counts = {0: {"sectors": 3200, "l1_miss_sectors": 400}}
    found = moved(make_run(BODY, counts, distinct_sectors_read=400, footprint_sectors=400))
    assert (found.l2_read, found.dram_read.value) == (400, 400)


def test_scattered_stores_are_partial(make_run) -> None:
    # 32 lanes, each 4 bytes in a sector of its own.
    found = moved(make_run(BODY, {1: {"sectors": 320, "bytes_asked": 1280}}, distinct_sectors_written=40))
    assert found.l2_write_partial == 320
    assert found.dram_write.value == 40


def test_atomics_are_read_and_written_in_l2(make_run) -> None:
    counts = {2: {"sectors": 50}}
    found = moved(make_run(BODY, counts, distinct_sectors_read=1, distinct_sectors_written=1, footprint_sectors=1))
    assert (found.l2_atomic, found.dram.value) == (50, 2)


def test_reuse_that_l2_holds_costs_nothing(make_run) -> None:
    # A 32 MB input read ten times by many waves: A100's 40 MiB hold it, T4's 4 MiB do not.
    sectors = 1_000_000
    counts = {0: {"sectors": 10 * sectors, "l1_miss_sectors": 10 * sectors}}
    run = make_run(BODY, counts, grid=65_536, distinct_sectors_read=sectors, footprint_sectors=sectors)
    assert moved(run, "A100").dram_read.value == sectors
    small = moved(run, "T4").dram_read
    assert (small.low, small.high) == (sectors, 10 * sectors)
    kept = 4 * 1024 * 1024 / (32 * sectors)
    assert small.value == pytest.approx(sectors * 10 ** (1 - kept))


def test_blocks_that_run_together_share_what_they_read(make_run) -> None:
    # One wave: however often the 128 MB are read, nothing is fetched twice.
    sectors = 4_000_000
    counts = {0: {"sectors": 9 * sectors, "l1_miss_sectors": 9 * sectors}}
    run = make_run(BODY, counts, grid=108, distinct_sectors_read=sectors, footprint_sectors=sectors)
    assert moved(run).dram_read.high == sectors
