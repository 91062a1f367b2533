"""The report itself, kernels in Python and in PTX, the command, and the option of a profile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.cli import main

FILE = Path(__file__).parent / "faulty.cu"
SOURCE = Path(__file__)


@cuda.jit
def no_barrier(x, y):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]  # python: store
    y[t] = tile[63 - t]  # python: load


@cuda.jit
def lockstep(x, y):
    first = cuda.shared.array(32, np.float32)
    second = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    first[t] = x[t]
    second[t] = x[t] + 1
    cuda.syncwarp()
    first[t] = second[31 - t]  # python: store again
    y[t] = first[t ^ 1]  # python: load again


@cuda.jit
def no_guard(x, y):
    row, column = cuda.grid(2)
    y[row, column] = x[row, column]  # python: no guard


@cuda.jit
def clean(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + 1


def line(mark: str) -> int:
    """The line of this file with a mark."""
    (found,) = [n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if text.endswith(f"# python: {mark}")]
    return found


def floats(count: int = 64) -> np.ndarray:
    """Values that differ."""
    return np.arange(1, count + 1, dtype=np.float32)


def test_python_speaks_python() -> None:
    (fault,) = gpulab.check(no_barrier[1, 64], floats(), floats()).faults
    assert (fault.kind, fault.line, fault.thread, fault.count) == ("race", line("store"), (32, 0, 0), 32)
    assert f"cuda.syncthreads() between line {line('store')} and line {line('load')}" in fault.message
    assert "shared array tile, element 32" in fault.message


def test_lanes_of_a_warp_in_python() -> None:
    (fault,) = gpulab.check(lockstep[1, 32], floats(), floats()).faults
    assert (fault.kind, fault.line, fault.thread, fault.count) == ("warp-sync", line("load again"), (0, 0, 0), 32)
    assert f"cuda.syncwarp() between line {line('store again')} and line {line('load again')}" in fault.message
    assert "shared array first, element 1" in fault.message


def test_two_dimensions() -> None:
    # 8 rows and 8 columns of threads, 7 rows of 9: only row 7 is outside, and Numba does not look.
    (fault,) = gpulab.check(no_guard[(2, 2), (4, 4)], np.zeros((7, 9)), np.zeros((7, 9))).faults
    assert (fault.kind, fault.line, fault.count) == ("out-of-bounds", line("no guard"), 8)
    assert (fault.block, fault.thread) == ((1, 0, 0), (3, 0, 0))


PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry swap(.param .u64 data) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 s[128];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u64 %rd2, s;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.shared.u32 [%rd2], %r1;
    ld.shared.u32 %r2, [s+4];
    add.s64 %rd1, %rd1, %rd3;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""


def test_ptx_has_lines_of_its_own() -> None:
    (fault,) = gpulab.check(gpulab.PtxKernel(PTX, "swap")[1, 32], np.zeros(32, np.int32)).faults
    # Every lane but lane 1 reads what lane 1 stored.
    assert (fault.kind, fault.line, fault.ptx_line, fault.count) == ("warp-sync", None, 14, 31)
    assert "bar.warp.sync between PTX line 13 and PTX line 14" in fault.message


def test_a_clean_kernel() -> None:
    x, y = floats(), np.zeros(64, np.float32)
    report = gpulab.check(clean[1, 64], x, y)
    assert report.ok and report.faults == () and report.notes == ()
    np.testing.assert_array_equal(y, x + 1)
    assert repr(report) == "Check of clean[1, 64] on an emulated A100: no faults"
    assert "no faults" in report._repr_html_()


def test_the_report_in_a_notebook_and_as_data() -> None:
    report = gpulab.check(
        gpulab.RawKernel.from_file(FILE, "increments")[2, 32], *(np.zeros(64, np.int32),) * 2, np.int32(64)
    )
    html = report._repr_html_()
    assert "<b>race" in html and "if (i &lt; n) histogram[key[i]] += 1;" in html
    assert "color:inherit" in html and "background:transparent" in html
    document = json.loads(json.dumps(report.to_json()))
    (fault,) = document["faults"]
    assert document["ok"] is False and document["kernel"] == "increments" and document["grid"] == [2, 1, 1]
    assert (
        fault["source"].startswith("if (i < n) histogram") and fault["kind"] == "race" and fault["thread"] == [0, 0, 0]
    )


def test_a_profile_with_a_check_runs_once_on_the_arrays() -> None:
    x, y = floats(), np.zeros(64, np.float32)
    profile = gpulab.profile(no_barrier[1, 64], x, y, check=True)
    assert profile.check is not None and [fault.kind for fault in profile.check.faults] == ["race"]
    assert profile.metrics["smsp__inst_executed.sum"] > 0
    plain = gpulab.profile(no_barrier[1, 64], x, np.zeros(64, np.float32))
    assert plain.check is None and plain.metrics == profile.metrics
    with pytest.raises(gpulab.KernelFault) as caught:
        gpulab.profile(no_guard[(2, 2), (4, 4)], np.zeros((7, 9)), np.zeros((7, 9)), check=True)
    assert "out-of-bounds" in "".join(caught.value.__notes__)


def test_a_profile_with_a_check_leaves_the_arrays_to_the_one_run() -> None:
    x = np.zeros(8, np.int32)
    add = gpulab.RawKernel('extern "C" __global__ void add(int* x) { atomicAdd(&x[threadIdx.x], 1); }', "add")
    assert gpulab.profile(add[1, 8], x, check=True).check.ok
    np.testing.assert_array_equal(x, 1)


def test_what_is_no_launch() -> None:
    with pytest.raises(gpulab.ArgumentError, match=r"check\(kernel\[grid, block\], x, y\)"):
        gpulab.check(clean, floats(), floats())


ARGUMENTS = ("--grid", "1", "--block", "64", "--arg", "in:float32:64:arange", "--arg", "out:float32:64")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(FILE), "--kernel", "no_barrier", *ARGUMENTS]) == 1
    told = capsys.readouterr().out
    assert "1 fault" in told and "tile[t] = x[t];" in told and "__syncthreads()" in told
    assert main(["check", str(FILE), "--kernel", "no_barrier", *ARGUMENTS, "--json"]) == 1
    assert [fault["kind"] for fault in json.loads(capsys.readouterr().out)["faults"]] == ["race"]
    assert main(["check", str(FILE.with_name("clean.cu")), "--kernel", "barrier", *ARGUMENTS]) == 0
    assert "no faults" in capsys.readouterr().out


def test_the_command_reports_a_refused_launch(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--grid", "1", "--block", "2048", *ARGUMENTS[4:]]
    assert main(["check", str(FILE), "--kernel", "no_barrier", *arguments]) == 1
    assert "at most 1,024 threads" in capsys.readouterr().out
    assert main(["check", "missing.cu", *ARGUMENTS]) == 2
