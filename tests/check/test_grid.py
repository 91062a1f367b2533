"""Barriers of the whole grid order blocks: what is before one with what is behind it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpulab
from gpulab import cuda

FILE = Path(__file__).parent / "grid.cu"
BLOCKS, THREADS = 4, 32
COUNT = BLOCKS * THREADS


def line(mark: str) -> int:
    """The line of `grid.cu` with this mark."""
    (found,) = [n for n, text in enumerate(FILE.read_text().splitlines(), 1) if text.endswith(f"// {mark}")]
    return found


def check(name: str, *more: int) -> tuple[gpulab.profiler.CheckReport, np.ndarray]:
    """The report on a kernel of `grid.cu`, and what it left."""
    kernel = gpulab.RawKernel.from_file(FILE, name, enable_cooperative_groups=True)
    x, y = np.zeros((2, COUNT), np.float32)
    return gpulab.check(kernel[BLOCKS, THREADS], x, y, np.int32(COUNT), *map(np.int32, more)), y


def test_what_is_before_a_barrier_is_before_what_is_behind_it() -> None:
    report, y = check("turned", 3)
    assert report.ok and not report.notes, report
    np.testing.assert_array_equal(y, COUNT - 1 - np.arange(COUNT) + 2)


def test_without_a_barrier_blocks_race() -> None:
    report, _ = check("turned_once_unordered")
    (fault,) = report.faults
    assert fault.kind == "race" and "Blocks run in any order" in fault.message, report
    # Blocks 2 and 3 store what blocks 1 and 0 have read; these read before blocks 2 and 3 store: the same pair of lines.
    assert fault.line == line("unordered: store") and f"line {line('unordered: load')}" in fault.message
    assert fault.block == (2, 0, 0) and fault.count == 2 * THREADS


def test_a_loop_needs_two_barriers() -> None:
    report, _ = check("second_barrier_missing", 2)
    (fault,) = report.faults
    assert fault.kind == "race" and f"line {line('missing: load')}" in fault.message, report
    assert f"line {line('missing: store')}" in fault.message


@pytest.mark.parametrize("synchronized", [True, False])
def test_in_python(synchronized: bool) -> None:
    @cuda.jit
    def turned(x, y):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        x[i] = i
        if synchronized:
            grid.sync()
        y[i] = x[x.size - 1 - i]

    x, y = np.zeros((2, COUNT), np.float32)
    report = gpulab.check(turned[BLOCKS, THREADS], x, y)
    assert report.ok == synchronized and not report.notes, report
