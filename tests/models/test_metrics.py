"""Metrics of hand-made launches, each number worked by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpulab import trace
from gpulab.gpus import gpu
from gpulab.models.metrics import METRICS, Metrics, Sources, UnknownMetricError, bounds, metrics
from gpulab.models.run import KernelRun
from gpulab.models.traffic import traffic

LOAD = "pipe_lsu_mem_global_op_ld"
STORE = "pipe_lsu_mem_global_op_st"

# One warp copies a column: loads 32 sectors apart, stores next to one another; two of three branches go one way.
COLUMN = """
    ld.global.f32 %f1, [%rd1];
    st.global.f32 [%rd2], %f1;
    @%p1 bra DONE;
    ld.shared.v2.f32 {%f2, %f3}, [%r1];
    fma.rn.f32 %f4, %f2, %f3, %f1;
    add.f32 %f5, %f4, %f1;
    @%p2 add.f64 %fd1, %fd2, %fd3;
    st.shared.f32 [%r2], %f5;
DONE:
    ret;
"""
COUNTS = {
    0: {"requests": 3, "sectors": 96, "sectors_ideal": 12, "bytes_asked": 384, "wavefronts": 96, "lines": 96},
    1: {"requests": 3, "sectors": 12, "sectors_ideal": 12, "bytes_asked": 384, "wavefronts": 3, "lines": 3},
    2: {"divergent_branches": 1},
    3: {"requests": 2, "bytes_asked": 2 * 256, "wavefronts": 6, "wavefronts_ideal": 4},
    6: {"thread_instructions_pred_on": 16},
    7: {"requests": 2, "bytes_asked": 256, "wavefronts": 64, "wavefronts_ideal": 2},
}


def evaluate(run: KernelRun) -> Metrics:
    spec = gpu("A100")
    occupancy = run.occupancy(spec)
    return metrics(Sources(run, run.tally(), spec, occupancy, traffic(run, spec, occupancy)))


@pytest.fixture
def column(make_run) -> Metrics:
    run = make_run(COLUMN, COUNTS, grid=3, distinct_sectors_read=72, distinct_sectors_written=12)
    recorder = trace.Recorder(trace.Tracing(near=(0,)))
    for time, lines in enumerate(([0, 1, 2, 3], [4, 5, 6, 7], [1, 2, 3, 8])):  # the last finds 24 of its 32 sectors
        sectors = [32 * group + sector for group in lines for sector in range(8)]
        recorder.request(sectors, kind=trace.LOAD, block=0, warp=0, instruction=0, time=64 * time)
    recorder.request(range(900, 912), kind=trace.STORE, block=0, warp=0, instruction=1, time=200)
    return evaluate(dataclasses.replace(run, counters=dataclasses.replace(run.counters, trace=recorder.finish())))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"l1tex__t_requests_{LOAD}.sum", 3),
        (f"l1tex__t_sectors_{LOAD}.sum", 96),
        (f"l1tex__average_t_sectors_per_request_{LOAD}.ratio", 32),
        (f"l1tex__t_bytes_{LOAD}.sum", 3072),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", 4),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 12.5),
        (f"l1tex__t_sectors_{STORE}.sum", 12),
        (f"l1tex__average_t_sectors_per_request_{STORE}.ratio", 4),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", 100),
        ("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", 0),
        ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 0),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 6),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 2),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", 62),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 64),
        ("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", 100 * 768 / (70 * 128)),
        ("smsp__inst_executed_op_shared_st.sum", 3),
        ("memory_l2_theoretical_sectors_global", 108),
        ("memory_l2_theoretical_sectors_global_ideal", 24),
        ("derived__memory_l2_theoretical_sectors_global_excessive", 84),
        ("derived__memory_l1_wavefronts_shared_excessive", 64),
        ("smsp__inst_executed.sum", 27),
        ("smsp__thread_inst_executed.sum", 27 * 32),
        ("smsp__thread_inst_executed_pred_on.sum", 27 * 32 - 80),
        ("smsp__thread_inst_executed_per_inst_executed.ratio", 32),
        ("smsp__thread_inst_executed_per_inst_executed.pct", 100 * (27 * 32 - 80) / (27 * 32)),
        ("smsp__average_inst_executed_per_warp.ratio", 9),
        ("smsp__sass_branch_targets.sum", 3),
        ("smsp__sass_branch_targets_threads_divergent.sum", 1),
        ("smsp__sass_average_branch_targets_threads_uniform.pct", pytest.approx(66.6667, abs=1e-3)),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 96),
        ("smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", 192),
        ("smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", 16),
        ("smsp__sass_thread_inst_executed_op_control_pred_on.sum", 192),
        (f"l1tex__t_sectors_{LOAD}_lookup_hit.sum", 24),
        (f"l1tex__t_sector_{LOAD}_hit_rate.pct", 25),
        ("l1tex__t_sector_hit_rate.pct", 100 * 24 / 108),
        ("lts__t_sectors_op_read.sum", 72),
        ("lts__t_sectors_srcunit_tex_op_read.sum", 72),
        ("lts__t_sectors_op_write.sum", 12),
        ("lts__t_sectors_op_atom.sum", 0),
        ("lts__t_sectors_op_red.sum", 0),
        ("lts__t_sector_hit_rate.pct", 100 * 12 / 84),
        ("dram__bytes_read.sum", 72 * 32),
        ("dram__sectors_read.sum", 72),
        ("dram__bytes_write.sum", 12 * 32),
        ("dram__sectors_write.sum", 12),
        ("dram__bytes.sum", 84 * 32),
        ("launch__grid_size", 3),
        ("launch__block_size", 32),
        ("launch__registers_per_thread", 32),
        ("launch__occupancy_limit_blocks", 32),
        ("launch__occupancy_limit_warps", 64),
        ("launch__waves_per_multiprocessor", 3 / (108 * 32)),
        ("sm__maximum_warps_per_active_cycle_pct", 50),
    ],
)
def test_value(column: Metrics, name: str, value: float) -> None:
    assert column[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)


def test_bounds_stand_beside_what_is_modeled(make_run) -> None:
    body = "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1; atom.global.add.u32 %r1, [%rd3], 1; ret;"
    counts = {0: {"sectors": 1000}, 1: {"sectors": 100}, 2: {"sectors": 7}}
    run = make_run(body, counts, distinct_sectors_read=200, distinct_sectors_written=107)
    spec = gpu("A100")
    held = run.occupancy(spec)
    misses = np.array([400.0, 0, 0, 0])
    sources = Sources(run, run.tally(), spec, held, traffic(run, spec, held, misses))
    found = bounds(sources)
    assert found[f"l1tex__t_sectors_{LOAD}_lookup_miss.sum"] == (200, 1000)
    assert found[f"l1tex__t_sectors_{LOAD}_lookup_hit.sum"] == (0, 800)
    assert found[f"l1tex__t_sector_{LOAD}_hit_rate.pct"] == (0, 80)
    assert found["dram__sectors_read.sum"] == (200, 407)
    assert found["dram__bytes.sum"] == (32 * 307, 32 * (407 + 107))
    assert found["lts__t_sector_hit_rate.pct"] == pytest.approx((100 * (1 - 407 / 507), 100 * (1 - 200 / 507)))
    values = metrics(sources)
    assert values[f"l1tex__t_sectors_{LOAD}_lookup_miss.sum"] == 400
    assert (values["lts__t_sectors_op_atom.sum"], values["lts__t_sectors_op_red.sum"]) == (7, 0)
    # What is counted is certain.
    assert not {"lts__t_sectors_op_write.sum", "lts__t_sectors_op_atom.sum", "dram__bytes_write.sum"} & set(found)
    assert all(low <= values[name] <= high for name, (low, high) in found.items())


def test_a_known_zero_is_zero_and_the_undefined_is_absent(make_run) -> None:
    found = evaluate(make_run("add.f32 %f1, %f1, %f1; ret;"))
    assert found[f"l1tex__t_sectors_{LOAD}.sum"] == 0
    assert found["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] == 0
    assert f"l1tex__average_t_sectors_per_request_{LOAD}.ratio" not in found
    with pytest.raises(UnknownMetricError, match=r"does not determine .*there are no global loads"):
        found[f"l1tex__average_t_sectors_per_request_{LOAD}.ratio"]


def test_a_misspelt_metric_suggests_the_right_one(column: Metrics) -> None:
    with pytest.raises(KeyError, match=r"no metric .*Did you mean l1tex__t_sectors_pipe_lsu_mem_global_op_ld\.sum"):
        column["l1tex__t_sector_pipe_lsu_mem_global_op_ld.sum"]
    assert column.get("nonsense") is None


def test_local_memory_is_unknown_when_ptxas_keeps_a_stack(make_run) -> None:
    run = dataclasses.replace(make_run("ret;"), local_bytes=64)
    assert "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum" not in evaluate(run)


def test_generic_accesses_count_where_they_went(make_run) -> None:
    body = "ld.f32 %f1, [%rd1]; ld.f32 %f2, [%rd2]; ret;"
    counts = {0: {"requests": 1, "sectors": 4, "wavefronts": 1}, 1: {"requests": 1, "wavefronts": 5}}
    found = evaluate(make_run(body, counts))
    assert found[f"l1tex__t_requests_{LOAD}.sum"] == 1
    assert found["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 5


def test_packed_halves_and_parameters(make_run) -> None:
    body = "ld.param.u64 %rd1, [a]; fma.rn.f16x2 %r1, %r2, %r3, %r4; ret;"
    run = make_run(body)
    assert run.tally().flop() == 4 * 32
    assert evaluate(run)[f"l1tex__t_requests_{LOAD}.sum"] == 0


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_row_is_documented(metric) -> None:
    assert len(metric.meaning) >= 10
    assert metric.how in ("emulated", "modeled", "launch")
    assert metric.unit
