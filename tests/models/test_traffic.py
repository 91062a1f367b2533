"""L2 and DRAM traffic of hand-made launches: exact where nothing is used twice, between honest bounds where it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from gpulab.gpus import Gpu, gpu
from gpulab.models.run import KernelRun
from gpulab.models.traffic import Traffic, traffic
from gpulab.trace import ALL_LINES, ARRAY, EVENT, LOAD, STORE, Recorder, Stream, Trace, Tracing

A100 = gpu("A100")
BODY = "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; red.global.add.f32 [%rd3], %f1; ret;"


def moved(run: KernelRun, name: str = "A100") -> Traffic:
    spec = gpu(name)
    return traffic(run, spec, run.occupancy(spec))


def traced(run: KernelRun, requests: list[tuple[int, int, int]]) -> KernelRun:
    """The launch with a trace of whole lines that one warp accessed, as (time, instruction, line)."""
    recorder = Recorder(Tracing(near=(0,)))
    for time, instruction, line in requests:
        kind = STORE if instruction == 1 else LOAD
        sectors = range(4 * line, 4 * line + 4)
        recorder.request(sectors, kind=kind, block=0, warp=0, instruction=instruction, time=time)
    return dataclasses.replace(run, counters=dataclasses.replace(run.counters, trace=recorder.finish()))


def test_a_stream_moves_each_sector_once(make_run) -> None:
    counts = {0: {"sectors": 400}, 1: {"sectors": 400, "bytes_asked": 12_800}}
    found = moved(
        make_run(BODY, counts, distinct_sectors_read=400, distinct_sectors_written=400, footprint_sectors=800)
    )
    assert (found.l2_read, found.l2_write, found.l2_write_partial, found.l2) == (400, 400, 0, 800)
    assert (found.dram.low, found.dram.value, found.dram.high) == (800, 800, 800)


def test_what_l1_keeps_does_not_reach_l2(make_run) -> None:
    run = make_run(BODY, {0: {"sectors": 3200}}, distinct_sectors_read=400, footprint_sectors=400)
    # Line by line, eight times each.
    found = moved(traced(run, [(64 * step, 0, step // 8) for step in range(80)]))
    assert (found.l2_read, found.dram_read.value) == (400, 400)
    assert found.l1_misses.tolist() == [400, 0, 0, 0]


def test_what_is_read_at_all_passes_l2(make_run) -> None:
    # One line that is loaded again and again, but not in the sample.
    trace = Trace(Stream(np.zeros(0, EVENT), ALL_LINES // 64), Stream(np.zeros(0, EVENT), ALL_LINES // 64))
    run = make_run(BODY, {0: {"sectors": 3200}}, distinct_sectors_read=4)
    found = moved(dataclasses.replace(run, counters=dataclasses.replace(run.counters, trace=trace)))
    assert (found.l2_read, found.dram_read.value) == (4, 4)


def test_loads_are_taken_to_miss_where_nothing_was_traced(make_run) -> None:
    assert moved(make_run(BODY, {0: {"sectors": 3200}}, distinct_sectors_read=400)).l2_read == 3200


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
    # Ten walks over 3,200 sectors with a small L1: in L2 they cost once, if it has 800 lines.
    run = make_run(BODY, {0: {"sectors": 32_000}}, distinct_sectors_read=3200, footprint_sectors=3200)
    run = traced(run, [(4096 * step, 0, step % 800) for step in range(8000)])
    for lines, value, likely in ((1600, 3200, 3200), (800, 3200, 32_000), (799, 32_000, 32_000)):
        spec = dataclasses.replace(A100, l2_bytes=lines * 128, l1_bytes=64 * 1024)
        found = traffic(run, spec, run.occupancy(spec))
        assert (found.dram_read.low, found.dram_read.value, found.dram_read.high) == (3200, value, 32_000)
        assert (found.dram_likely.low, found.dram_likely.high) == (3200, likely)


def test_dram_moves_no_more_than_l2_is_asked_for(make_run) -> None:
    run = make_run(BODY, {0: {"sectors": 4000}}, distinct_sectors_read=3200, footprint_sectors=3200)
    run = traced(run, [(4096 * step, 0, step % 800) for step in range(8000)])
    spec = dataclasses.replace(A100, l2_bytes=12_800, l1_bytes=64 * 1024)
    assert traffic(run, spec, run.occupancy(spec)).dram_read.value == 4000


def test_stores_are_written_back_when_they_leave(make_run) -> None:
    run = make_run(BODY, {1: {"sectors": 32_000, "bytes_asked": 1_024_000}}, distinct_sectors_written=3200)
    run = traced(run, [(4096 * step, 1, step % 800) for step in range(8000)])
    spec = dataclasses.replace(A100, l2_bytes=128 * 799)
    found = traffic(run, spec, run.occupancy(spec))
    assert (found.dram_write.low, found.dram_write.value, found.dram_write.high) == (3200, 32_000, 32_000)
    assert found.dram_read.high == 0


def test_launches_add_up(make_run) -> None:
    one = moved(make_run(BODY, {0: {"sectors": 400}}, distinct_sectors_read=400))
    both = one + one
    assert (both.l2_read, both.dram.value, both.dram_likely.high) == (800, 800, 800)
    assert both.l1_misses.tolist() == [400, 0, 0, 0] * 2


# ---- sampled launches


def sampled(
    make_run, *, grid: int, ran: range, lines: dict[str, Callable[[int], range]], totals: dict[str, int]
) -> KernelRun:
    """A launch of `grid` blocks of which a stretch was traced; each loads its lines of each array once."""
    recorder, starts = Recorder(Tracing()), {name: place << 20 for place, name in enumerate(lines)}
    for block in ran:
        for name, of in lines.items():
            for step, line in enumerate(of(block)):
                sectors = range(4 * (starts[name] + line), 4 * (starts[name] + line) + 4)
                recorder.request(sectors, kind=LOAD, block=block, warp=0, instruction=0, time=4096 * step)
    seen = {name: 4 * len({line for block in ran for line in of(block)}) for name, of in lines.items()}
    arrays = np.array([(starts[name], seen[name], 0, totals[name], 0) for name in lines], ARRAY)
    trace = dataclasses.replace(recorder.finish(ran), arrays=arrays)
    asked = grid * 4 * sum(len(of(ran[0])) for of in lines.values())
    run = make_run(BODY, {0: {"sectors": asked}}, grid=grid, distinct_sectors_read=sum(totals.values()))
    counters = dataclasses.replace(run.counters, trace=trace, sampled_blocks=3 * len(ran))
    return dataclasses.replace(run, counters=counters)


def small(sm_count: int, l2_lines: int) -> Gpu:
    """A GPU with one block per SM."""
    return dataclasses.replace(A100, sm_count=sm_count, max_blocks_per_sm=1, l2_bytes=128 * l2_lines)


def read(run: KernelRun, spec: Gpu) -> float:
    return traffic(run, spec, run.occupancy(spec)).dram_read.value


def test_a_sampled_stream_moves_each_sector_once(make_run) -> None:
    lines = {"x": lambda block: range(50 * block, 50 * block + 50)}
    run = sampled(make_run, grid=1000, ran=range(495, 505), lines=lines, totals={"x": 200_000})
    for l2_lines in (10, 1000, 10**6):
        assert read(run, small(100, l2_lines)) == pytest.approx(200_000, rel=1e-3)


def test_each_wave_of_a_sampled_launch_reads_what_all_share(make_run) -> None:
    # All blocks read the same 500 lines: ten waves.
    run = sampled(make_run, grid=1000, ran=range(495, 505), lines={"x": lambda _: range(500)}, totals={"x": 2000})
    assert read(run, small(100, 500)) == 2000
    assert read(run, small(100, 5)) == pytest.approx(20_000, rel=0.01)
    assert read(run, small(1000, 5)) == 2000  # a single wave


def test_waves_of_a_sampled_matrix_product(make_run) -> None:
    # 100 x 100 blocks: those of a row of the grid read the same 40 lines of a, those of a column the same 40 of b. A wave is
    # a row: it reads 40 lines of a and all of b.
    lines = {
        "a": lambda block: range(block // 100 * 40, block // 100 * 40 + 40),
        "b": lambda block: range(block % 100 * 40, block % 100 * 40 + 40),
    }
    totals = {"a": 16_000, "b": 16_000}
    run = sampled(make_run, grid=10_000, ran=range(5045, 5057), lines=lines, totals=totals)
    assert read(run, small(100, 40)) == pytest.approx(16_000 + 100 * 16_000, rel=0.02)
    assert read(run, small(100, 10_000)) == 32_000
