"""The speed benchmark: how it judges, and that it still runs."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("emulator_benchmark", FOLDER / "emulator.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


SIMULATED = {"n": 10, "seconds_per_fma": 2e-6}


def _row(name: str, cpu_seconds: float, uncounted: float) -> dict[str, object]:
    """A million FMA, which the simulator does in 2 s."""
    return {
        "name": name,
        "language": "cuda",
        "work": 10**6,
        "seconds": cpu_seconds / 2,
        "one_core_seconds": cpu_seconds,
        "cpu_seconds": cpu_seconds,
        "uncounted_cpu_seconds": uncounted,
    }


@pytest.mark.parametrize(
    ("name", "cpu_seconds", "uncounted", "pocl_seconds", "enough"),
    [
        ("sgemm 16x16", 0.0002, 0.00011, 0.00021, True),
        ("sgemm 16x16", 0.0002, 0.00011, 0.00019, False),  # slower than PoCL
        ("sgemm 16x16", 0.00042, 0.0004, 0.1, False),  # 9,524 times the simulator
        ("softmax 256", 0.00042, 0.0004, 0.1, True),  # which is asked of SGEMM only
        ("softmax 256", 0.0002, 0.00009, 0.1, False),  # counters cost more than the run
    ],
)
def test_verdict(
    benchmark: ModuleType, name: str, cpu_seconds: float, uncounted: float, pocl_seconds: float, enough: bool
) -> None:
    row, other = _row(name, cpu_seconds, uncounted), {"seconds": pocl_seconds, "cpu_seconds": pocl_seconds}
    assert benchmark.fast_enough(row, other, SIMULATED) is enough


def test_a_python_without_pocl_is_told_how_to_get_it(benchmark: ModuleType) -> None:
    options = argparse.Namespace(pocl_python=None, repeats=1, scale=8, only="vector")
    if importlib.util.find_spec("pyopencl") is not None:
        pytest.skip("pyopencl is installed here")
    assert "No module named 'pyopencl'. Install pyopencl[pocl]" in benchmark.pocl(options)["missing"]


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("number", range(12))
def test_every_workload_gives_right_results(benchmark: ModuleType, number: int, language: str) -> None:
    benchmark.gpulab.use("A100")
    workload = benchmark.workloads(16)[number]
    row = benchmark.time_workload(workload, language, 1, all_modes=False)
    assert 0 < row["seconds"] < 5 and row["name"] == workload.name


def test_wrong_results_are_no_time(benchmark: ModuleType) -> None:
    workload = benchmark.workloads(16)[9]
    arguments = workload.arguments()
    right = workload.expected(arguments)
    assert workload.is_right(arguments, right)
    assert not workload.is_right(arguments, np.roll(right, 1))


def test_a_table_and_the_simulator(benchmark: ModuleType) -> None:
    simulated = benchmark.simulator(6)
    assert simulated["n"] == 6 and simulated["seconds_per_fma"] > 1e-7
    rivals = {"rows": {"sgemm 16x16": {"cpu_seconds": 0.0004}}}
    text = benchmark.table([_row("sgemm 16x16", 0.0002, 0.0001)], rivals, SIMULATED)
    line = text.splitlines()[1].split()
    # wall, CPU, uncounted, PoCL in ms; PoCL / ours, counted / uncounted, one core / both, times the simulator
    assert line[:2] == ["sgemm", "16x16"] and line[3:] == ["0.1", "0.2", "0.1", "0.4", "2.00", "2.00", "2.00", "20,000"]
