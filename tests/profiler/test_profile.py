"""`profile` end to end on the emulated GPU: what it runs, counts, says and hands out."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.devices import Device, LaunchRecord, current, device_for
from gpulab.errors import ArgumentError, KernelFault, LaunchError
from gpulab.profiler import Profile
from gpulab.profiling.judged import judge

N = 1 << 16
COLUMN = """
extern "C" __global__ void column(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = (i % 256) * 256 + i / 256;
    if (i < n)
        y[i] = x[j];
}
"""
LOADS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"


@cuda.jit
def scale(x, y, a):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i]


@pytest.fixture(scope="module", autouse=True)
def on_a100() -> None:
    gpulab.use("A100")


@pytest.fixture(scope="module")
def column() -> Profile:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    found = gpulab.profile(gpulab.RawKernel(COLUMN, "column")[N // 256, 256], x, y, np.int32(N))
    assert np.array_equal(y, x.reshape(256, 256).T.ravel())
    return found


@pytest.fixture(scope="module")
def scaled() -> Profile:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    found = gpulab.profile(scale[N // 256, 256], x, y, np.float32(2))
    assert np.array_equal(y, 2 * x)
    return found


def test_counters_under_ncu_names(column: Profile) -> None:
    assert column.metrics[LOADS] == 32
    assert column.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == N
    assert column.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == N // 8
    assert column.metrics["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] == 0
    assert column.metrics["launch__block_size"] == 256


def test_flop_of_a_numba_kernel(scaled: Profile) -> None:
    assert scaled.metrics["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"] == N
    assert scaled.metrics[LOADS] == 4
    assert scaled.language == "numba"


def test_the_time_is_modeled_and_says_so(column: Profile) -> None:
    time = column.time
    assert (time.source, time.clock_hz) == ("modeled", 1.41e9)
    assert 0 < time.low < time.seconds < time.high
    assert time.terms["launch"] == 2.62e-6


def test_occupancy_is_what_gpulab_occupancy_says(column: Profile) -> None:
    assert column.registers_per_thread is not None
    assert column.occupancy == gpulab.occupancy("A100", block=256, registers_per_thread=column.registers_per_thread)


def test_findings_name_the_line(column: Profile, scaled: Profile) -> None:
    finding = column.findings[0]
    assert (finding.kind, finding.line) == ("uncoalesced", 7)
    assert "uncoalesced" not in {found.kind for found in scaled.findings}


def test_lines_stand_beside_their_source(column: Profile, scaled: Profile) -> None:
    line = next(line for line in column.lines if line.line == 7)
    assert line.text == "y[i] = x[j];"
    assert line.metrics[LOADS] == 32
    line = next(line for line in scaled.lines if line.text == "y[i] = a * x[i]")
    assert line.metrics["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"] == N
    assert "y[i] = a * x[i]" in repr(scaled.lines)


def test_ptx_and_sass(column: Profile) -> None:
    assert ".entry column" in column.ptx
    assert "LDG" in str(column.sass)


def test_the_same_run_on_another_gpu(column: Profile) -> None:
    other = column.on("T4")
    assert other.gpu.name == "T4"
    assert other.metrics[LOADS] == column.metrics[LOADS]
    assert other.time.terms["dram"] > 4 * column.time.terms["dram"]
    assert other.occupancy.max_warps_per_sm == 32
    assert any("code compiled for compute capability 8.0" in note for note in other.notes)
    assert "compute capability 8.0" in repr(other)
    assert column.on("A100").time == column.time
    assert column.notes == ()


def test_a_gpu_that_could_not_hold_the_block() -> None:
    source = 'extern "C" __global__ void k(float *y) { extern __shared__ float s[]; s[0] = 1; y[0] = s[0]; }'
    kernel = gpulab.RawKernel(source, "k")
    kernel.max_dynamic_shared_size_bytes = 100 * 1024
    found = gpulab.profile(kernel[1, 32, 0, 100 * 1024], np.zeros(1, np.float32))
    assert found.occupancy.limits["shared"] == 1
    with pytest.raises(LaunchError, match="T4 may use at most 65,536 bytes"):
        found.on("T4")


def test_what_if_hardware(column: Profile) -> None:
    fast = gpulab.gpu("A100").replace(launch_overhead_s=1e-9)
    assert column.on(fast).time.terms["launch"] == 1e-9
    assert "A100 (launch_overhead 1 ns)" in repr(column.on(fast))


def test_another_gpu_for_one_profile_leaves_the_current_one() -> None:
    x, y = np.ones(256, np.float32), np.zeros(256, np.float32)
    found = gpulab.profile(scale[1, 256], x, y, np.float32(3), gpu="H100")
    assert (found.gpu.name, found.ptx.count(".target sm_90")) == ("H100", 1)
    assert current().gpu.name == "A100"
    assert y[0] == 3


def test_sampling_scales_up_and_says_so(column: Profile) -> None:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    kernel = gpulab.RawKernel(COLUMN, "column")[N // 256, 256]
    sampled = gpulab.profile(kernel, x, y, np.int32(N), sample_blocks=16)
    assert sampled.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == N
    assert sampled.metrics["smsp__inst_executed.sum"] == column.metrics["smsp__inst_executed.sum"]
    assert sampled.notes == (
        "Counted in 16 of 256 blocks and extrapolated to the grid.",
        "Incomplete, because only these blocks ran: y.",
    )
    assert sampled.time.seconds == pytest.approx(column.time.seconds, rel=1e-6)
    assert np.count_nonzero(y) < N // 8


def test_errors_of_a_launch_come_through() -> None:
    short = np.zeros(N // 2, np.float32)
    with pytest.raises(KernelFault, match="out"):
        gpulab.profile(gpulab.RawKernel(COLUMN, "column")[N // 256, 256], short, short.copy(), np.int32(N))


def test_a_kernel_without_its_launch() -> None:
    with pytest.raises(ArgumentError, match=r"profile\(kernel\[grid, block\], x, y\)"):
        gpulab.profile(scale, np.zeros(4))


def test_six_lines(column: Profile) -> None:
    rows = {row.name: row for row in column.summary}
    assert list(rows) == ["time", "global loads", "global stores", "shared memory", "active lanes", "occupancy"]
    assert rows["global loads"].cells[1:5] == (
        "32 sectors/request",
        "4",
        "poor",
        "12.5 % of the bytes moved are used",
    )
    assert rows["global loads"].remedy.startswith("Line 7: Let neighboring threads access neighboring addresses")
    assert rows["global stores"].verdict == "good"
    assert rows["shared memory"].value == "none"
    assert rows["active lanes"].cells[1:5] == ("32 of 32", "32", "good", "no divergent branches")
    assert "modeled" in rows["time"].value


def test_occupancy_is_no_good_where_it_is_found_to_cost_time() -> None:
    x, y = np.arange(1 << 21, dtype=np.float32), np.zeros(1 << 21, np.float32)
    narrow, wide = (gpulab.profile(scale[x.size // block, block], x, y, np.float32(2)) for block in (32, 256))
    assert narrow.summary[-1].cells[1:4] == ("50 %", "100 %", "fair")
    assert narrow.summary[-1].remedy.startswith("Use larger blocks")
    assert narrow.summary[0].remedy.startswith("First: occupancy, up to")
    assert wide.summary[-1].cells[1:] == ("100 %", "100 %", "good", "64 of 64 warps per SM, limited by warps", "")


def test_texts_are_the_same_every_time(column: Profile) -> None:
    again = Profile(tuple(judge(launch.record, launch.gpu) for launch in column.launches))
    assert repr(again) == repr(column)
    assert again._repr_html_() == column._repr_html_()
    assert repr(column).splitlines()[0] == "column on A100 at 1.41 GHz, grid 256, block 256"


class Structure(HTMLParser):
    """Counts tags and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_a_table_with_headers_and_no_colors_of_its_own(column: Profile) -> None:
    html = column._repr_html_()
    structure = Structure()
    structure.feed(html)
    assert structure.open == []
    assert (structure.counts["tr"], structure.counts["th"], structure.counts["td"]) == (7, 6 + 6, 6 * 5)
    assert "#" not in html
    assert "color:inherit" in html


def test_numbers_keep_their_units_on_one_line(scaled: Profile) -> None:
    html = scaled._repr_html_()
    assert re.search(r'white-space:nowrap">100 %<', html)
    assert not re.search(r'white-space:nowrap">[^<]{21,}<', html)


def test_html_has_no_empty_column(scaled: Profile) -> None:
    assert not any(row.remedy for row in scaled.summary[1:])
    without = dataclasses.replace(scaled.table(), rows=tuple((*row.cells[:5], "") for row in scaled.summary))
    structure = Structure()
    structure.feed(without._repr_html_())
    assert (structure.counts["tr"], structure.counts["th"], structure.counts["td"]) == (7, 5 + 6, 6 * 4)
    assert "remedy" not in without._repr_html_()


def test_lines_of_a_notebook_say_cell(scaled: Profile) -> None:
    lines = [dataclasses.replace(line, file="/any/ipykernel_1/2.py") for line in scaled.lines]
    shown = type(scaled.lines)(lines).table()
    assert [row[0] for row in shown.rows] == [f"cell:{line.line}" for line in lines]


def test_details_have_everything(column: Profile) -> None:
    text = repr(column.details())
    for name in (*column.metrics, "time.terms['dram']", "occupancy.limits['registers']"):
        assert name in text
    assert "modeled" in text
    assert "emulated" in text


def test_json_document(column: Profile) -> None:
    document = json.loads(json.dumps(column.to_json(), allow_nan=False))
    assert document["name"] == "column"
    assert (document["language"], document["gpu"], document["clock_hz"]) == ("cuda", "A100", 1.41e9)
    assert (document["grid"], document["block"]) == ([256, 1, 1], [256, 1, 1])
    assert document["occupancy"] == 1.0
    assert document["metrics"][LOADS] == 32
    assert set(document["time"]) == {"seconds", "low", "high", "source", "bound_by", "terms"}
    assert document["metric_sources"][LOADS] == "emulated"
    assert document["metric_sources"]["dram__bytes.sum"] == "modeled"
    assert document["findings"][0]["line"] == 7
    line = next(line for line in document["lines"] if line["line"] == 7)
    assert line["metrics"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == N


def test_a_roofline_of_one(column: Profile, scaled: Profile) -> None:
    assert column.roofline().unit == "warp instruction"
    assert [point.name for point in scaled.roofline().points] == ["scale", "scale"]
    assert scaled.roofline().points[0].work_per_byte == pytest.approx(1 / 8)


# ---- a CUDA GPU, stood in for by one that runs kernels on the emulated GPU and reports fixed times


class Measuring(Device):
    """Launches like a CUDA GPU: no counters, but times."""

    kind = "cuda"

    def __init__(self) -> None:
        self.gpu = gpulab.gpu("A100")
        self.twin = device_for("A100")

    def launch(self, bound, args, *, count=False, sample_blocks=None) -> LaunchRecord:
        assert sample_blocks is None
        record = self.twin.launch(bound, args)
        samples = tuple(1e-5 + number * 1e-7 for number in range(21))
        return dataclasses.replace(record, kind="cuda", seconds=1.1e-5, samples=samples, program=None, counters=None)

    def allocate(self, nbytes, name="device array"):
        return self.twin.allocate(nbytes, name)

    def synchronize(self) -> None:
        pass

    def free_all(self) -> None:
        pass


INCREMENT = 'extern "C" __global__ void increment(float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] += 1; }'


@pytest.fixture(scope="module")
def increment() -> gpulab.RawKernel:
    return gpulab.RawKernel(INCREMENT, "increment")


def test_a_cuda_gpu_measures_and_its_emulated_twin_counts(increment: gpulab.RawKernel) -> None:
    y = np.zeros(N, np.float32)
    found = gpulab.profile(increment[N // 256, 256], y, gpu=Measuring())
    assert np.all(y == 1), "the kernel ran exactly once as far as arrays show"
    assert (found.time.seconds, found.time.source, found.time.clock_hz) == (1.1e-5, "measured", None)
    assert (found.time.low, found.time.high) == pytest.approx((1e-5 + 1e-7, 1e-5 + 19e-7))
    assert found.metrics[LOADS] == 4
    assert "11 µs (10.1 to 11.9 µs, measured)" in repr(found)
    assert found.on("H100").time.source == "modeled"


def test_device_arrays_are_counted_on_copies(increment: gpulab.RawKernel) -> None:
    device = Measuring()
    y = device.to_device(np.zeros(N, np.float32))
    assert gpulab.profile(increment[N // 256, 256], y, gpu=device).metrics[LOADS] == 4
    assert np.all(y.copy_to_host() == 1)


def test_what_the_twin_can_not_run_is_measured_only() -> None:
    device = Measuring()
    device.gpu = device.gpu.replace(name="small", shared_bytes_per_block=512)
    source = INCREMENT.replace("{", "{ __shared__ volatile float s[256]; s[threadIdx.x] = 1;")
    found = gpulab.profile(gpulab.RawKernel(source, "increment")[1, 256], np.zeros(256, np.float32), gpu=device)
    assert (found.metrics, found.findings, list(found.lines)) == ({}, [], [])
    assert "emulated twin of this GPU could not run it" in found.notes[0]
    assert "not counted" in repr(found)
    assert found.time.source == "measured"
    assert found.to_json()["metrics"] == {}
