"""Lines, instructions and the source view: PTX and SASS beside each other, and where the modeled time goes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import ArgumentError
from gpulab.profiler import Profile

POLYNOMIAL = """
extern "C" __global__ void polynomial(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[32 * i % n];
    v = v * v + 3.0f;
    y[i] = v;
}
"""
N = 1 << 14


@pytest.fixture(scope="module", autouse=True)
def on_a100() -> None:
    gpulab.use("A100")


@pytest.fixture(scope="module")
def found() -> Profile:
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    return gpulab.profile(gpulab.RawKernel(POLYNOMIAL, "polynomial")[N // 256, 256], x, y, np.int32(N))


@cuda.jit
def twice(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + x[i]


def test_the_hot_spot_is_found(found: Profile) -> None:
    hottest = found.lines.hottest()
    assert [line.line for line in found.lines] == sorted(line.line for line in found.lines)
    assert (hottest[0].line, hottest[0].text) == (7, "float v = x[32 * i % n];")
    assert hottest[0].time_share > 0.5
    assert len(hottest) == 3 and hottest[0].time_share >= hottest[1].time_share >= hottest[2].time_share
    assert 0.9 < sum(line.time_share for line in found.lines) <= 1 + 1e-9


def test_lines_have_what_their_sass_executes(found: Profile) -> None:
    """Straight-line code: every warp executes each instruction once, so a line has its number times the warps."""
    warps = N // 32
    for line in found.lines:
        texts = [row[2] for row in found.source(line.line).rows if row[2]]
        assert line.sass_instructions == warps * len(texts), line.line
    assert sum(line.sass_instructions for line in found.lines) == found.sass_metrics["smsp__inst_executed.sum"]


def test_a_line_shows_its_ptx_and_its_sass(found: Profile) -> None:
    table = found.source(9)
    assert table.title == "Line 9: y[i] = v;"
    assert any("st.global.f32" in row[0] and row[1] == f"{N // 32}" for row in table.rows)
    assert any(row[2].startswith("STG.E") and row[3] == f"{N // 32}" for row in table.rows)
    with pytest.raises(ArgumentError, match="No instruction belongs to line 3.* 7, "):
        found.source(3)


def test_the_source_has_lines_that_do_nothing_as_well(found: Profile) -> None:
    rows = {row[0]: row for row in found.source().rows}
    assert list(rows) == [str(number) for number in range(2, 11)]
    assert rows["3"][1:4] == ("", "", "")
    assert rows["7"][4] == "\N{NO-BREAK SPACE}" * 4 + "float v = x[32 * i % n];"
    assert "#####" in rows["7"][1]


def test_instructions_have_counters_and_the_sass_of_their_kind(found: Profile) -> None:
    (load,) = [one for one in found.instructions if one.text.startswith("ld.global")]
    assert (load.line, load.warp_instructions, load.sectors, load.sectors_ideal) == (7, N // 32, N, N // 8)
    assert [each.text.split()[0] for each in load.sass] == ["LDG.E"]
    assert load.sass[0].executed == load.sass[0].requests == N // 32
    assert sum(one.warp_instructions for one in found.instructions) == found.metrics["smsp__inst_executed.sum"]
    assert sum(one.time_share for one in found.instructions) == pytest.approx(1)
    (row,) = [row for row in found.instructions.table().rows if "ld.global" in row[2]]
    assert row[-1] == "LDG.E"


def test_tables_leave_out_what_nobody_has(found: Profile) -> None:
    columns = found.lines.table().columns
    assert columns[:4] == ("line", "time", "PTX", "SASS") and "excessive sectors" in columns
    assert "bank conflicts" not in columns and "atomics" not in columns
    assert "<table" in found.lines._repr_html_() and "<table" in found.instructions._repr_html_()


def test_sass_stands_beside_ptx(found: Profile) -> None:
    rows = found.sass_metrics.table().rows
    assert [row[0] for row in rows] == ["smsp__inst_executed.sum"]
    assert rows[0][2] == f"{found.metrics['smsp__inst_executed.sum']:,}" != rows[0][3]


def test_json_has_shares_and_sass(found: Profile) -> None:
    document = json.loads(json.dumps(found.to_json()))
    line = next(line for line in document["lines"] if line["line"] == 9)
    assert line["sass_instructions"] > 0 and 0 < line["time_share"] < 1 and line["atomics"] == 0
    assert document["sass_metrics"]["smsp__inst_executed.sum"] == found.sass_estimate.instructions
    assert found.to_json(sass=False)["lines"][0]["sass_instructions"] is None


def test_atomics_are_counted_where_they_are() -> None:
    source = 'extern "C" __global__ void add(int *x) {\n    __shared__ int s;\n    if (threadIdx.x == 0) s = 0;\n'
    source += "    __syncthreads();\n    atomicAdd(&s, 1);\n    atomicAdd(x + threadIdx.x, 1);\n}\n"
    profile = gpulab.profile(gpulab.RawKernel(source, "add")[3, 64], np.zeros(64, np.int32))
    assert {line.line: line.atomics for line in profile.lines if line.atomics} == {5: 6, 6: 6}


def test_python_kernels_and_several_launches() -> None:
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    one = gpulab.profile(twice[N // 128, 128], x, y)
    assert one.lines.hottest(1)[0].text == "y[i] = x[i] + x[i]"
    two = Profile((one.launches[0], one.launches[0]))
    for once, both in zip(one.lines, two.lines, strict=True):
        assert both.sass_instructions == 2 * once.sass_instructions
        assert both.time_share == pytest.approx(once.time_share)
    assert len(two.instructions) == 2 * len(one.instructions)
    assert sum(each.time_share for each in two.instructions) == pytest.approx(1)
    assert two.sass_metrics["smsp__inst_executed.sum"] == 2 * one.sass_metrics["smsp__inst_executed.sum"]
