"""The speed benchmark: how it judges, and that it still runs."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "emulator.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("emulator_benchmark", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(pocl_seconds: float) -> dict[str, object]:
    """n = 100: a million FMA, which the simulator does in 2 s."""
    pocl = {"coalesced": {"seconds": pocl_seconds, "cpu_seconds": 2 * pocl_seconds}}
    return {"n": 100, "tile": 32, "simulator": {"n": 10, "seconds_per_fma": 2e-6}, "pocl": pocl}


def _row(rung: str, seconds: float) -> dict[str, object]:
    return {"rung": rung, "language": "cuda", "seconds": seconds, "cpu_seconds": seconds}


@pytest.mark.parametrize(
    ("rung", "seconds", "pocl_seconds", "enough"),
    [
        ("coalesced", 0.001, 0.0011, True),
        ("coalesced", 0.001, 0.0009, False),  # slower than PoCL
        ("coalesced", 0.0021, 0.1, False),  # 950 times the simulator
        ("naive", 0.001, 0.0009, True),
        ("naive", 0.0021, 0.1, False),
    ],
)
def test_verdict(benchmark: ModuleType, rung: str, seconds: float, pocl_seconds: float, enough: bool) -> None:
    assert benchmark.fast_enough(_row(rung, seconds), _report(pocl_seconds)) is enough


def test_a_python_without_pocl_is_told_how_to_get_it(benchmark: ModuleType) -> None:
    options = argparse.Namespace(pocl_python=None, n=8, tile=8, repeats=1)
    if importlib.util.find_spec("pyopencl") is not None:
        pytest.skip("pyopencl is installed here")
    assert "No module named 'pyopencl'. Install pyopencl[pocl]" in benchmark.pocl(options)["missing"]


def test_a_rung_and_the_simulator_are_timed(benchmark: ModuleType) -> None:
    row = benchmark.time_rung("matmul", "coalesced", "cuda", 2, n=40)
    simulated = benchmark.simulator(6)
    report = {**_report(0.5), "simulator": simulated, "n": 40, "matmul": [row], "numpy": {"matmul": 1.0, "copy": 1.0}}
    assert 0 < row["seconds"] < 5 and row["parameters"]["m"] == 40
    assert simulated["n"] == 6 and simulated["seconds_per_fma"] > 1e-7
    assert "coalesced (cuda)" in benchmark.comparison(report) and "coalesced" in benchmark.table([row])
