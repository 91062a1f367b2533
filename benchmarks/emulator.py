"""How fast the emulated GPU is: against Numba's simulator, PoCL and NumPy, in one run.

Every emulated run has all counters and bounds checks on. Compilation is not in the times (a first run warms up);
the first launch of each kernel is listed beside them.

Two matmuls with one thread per element are compared: `coalesced`, the textbook's naive SGEMM, whose lanes are neighbors
in a row; and the ladder's `naive`, whose lanes walk down a column, so that every load gathers from as many cache lines
as a block has rows. The simulator runs the same source at a size that it can finish, compared per FMA: both must be
1,000 times as fast. PoCL runs the same loops in OpenCL, without counters and bounds checks; the textbook's must be no
slower than there, how the other compares is told as well. PoCL is optional and may live in another Python:

    python -m venv pocl-venv && pocl-venv/bin/pip install "pyopencl[pocl]"
    python benchmarks/emulator.py --pocl-python pocl-venv/bin/python --json emulator.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpulab

HERE = Path(__file__).resolve().parent
LEAST_GAIN_OVER_SIMULATOR = 1000


def median_seconds(action: Callable[[], object], repeats: int) -> float:
    """Median wall-clock seconds of so many calls."""
    return statistics.median(timed(action)[0] for _ in range(repeats))


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock seconds of a call, and CPU seconds of all threads together (what a busy machine disturbs less)."""
    start, cpu_start = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - cpu_start


def time_rung(ladder: str, rung: str, language: str, repeats: int, **parameters: int) -> dict[str, Any]:
    """First launch (with compilation, unless the disk cache has it) and median of the next ones, results checked."""
    problem = gpulab.kernels.ladder(ladder).at(**parameters)
    attempt = problem.attempt(rung, language)
    device = gpulab.current()

    def launch() -> None:
        for bound, arguments in attempt.launches:
            device.launch(bound, arguments, count=True)

    first, _ = timed(launch)
    verdict = problem.judge(attempt.arrays)
    if not verdict.correct:
        raise SystemExit(f"{ladder}/{rung}/{language} is wrong: {verdict.message}")
    times = [timed(launch) for _ in range(repeats)]
    return {
        "ladder": ladder,
        "rung": rung,
        "language": language,
        "parameters": problem.parameters,
        "first_seconds": first,
        "seconds": statistics.median(wall for wall, _ in times),
        "cpu_seconds": statistics.median(cpu for _, cpu in times),
    }


def matmuls(options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Both matmuls in both languages, and in PoCL: the best of several rounds, in which they take turns.

    Whatever else the machine does comes and goes; in turns it disturbs neither side only, and the best run the least.
    """
    rounds = [(_matmul_round(options), pocl(options)) for _ in range(options.rounds)]
    ours = [min(rows, key=lambda row: row["seconds"]) for rows in zip(*(rows for rows, _ in rounds), strict=True)]
    theirs = dict(rounds[0][1])
    for rung in {"naive", "coalesced"} & set(theirs):
        theirs[rung] = min((found[rung] for _, found in rounds), key=lambda row: float(row["seconds"]))
    return ours, theirs


def _matmul_round(options: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        time_rung("matmul", rung, language, options.repeats, n=options.n, tile=options.tile)
        for rung in ("naive", "coalesced")
        for language in ("numba", "cuda")
    ]


def all_rungs(repeats: int) -> list[dict[str, Any]]:
    """Every rung of every ladder in every language, at default sizes."""
    return [
        time_rung(ladder.name, rung.name, language, repeats)
        for ladder in gpulab.kernels()
        for rung in ladder.rungs
        for language in rung.languages
    ]


def simulator(n: int) -> dict[str, Any]:
    """The naive matmul in Numba's simulator, in a process of its own."""
    return _worker([sys.executable, str(HERE / "simulator_worker.py"), str(n)], {"NUMBA_ENABLE_CUDASIM": "1"})


def pocl(options: argparse.Namespace) -> dict[str, Any]:
    """The naive and the coalesced matmul in PoCL; without it, how to get it."""
    sizes = [str(number) for number in (options.n, options.tile, options.repeats)]
    try:
        return _worker([options.pocl_python or sys.executable, str(HERE / "pocl_worker.py"), *sizes], {})
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["it failed"])[-1]
        return {"missing": f"{reason}. Install pyopencl[pocl] in a virtual environment and pass --pocl-python."}


def _worker(command: list[str], variables: dict[str, str]) -> dict[str, Any]:
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, **variables}
    # Not in the repository's folders: a worker's Python may be another one, with nothing of ours on its path.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=Path.home())
    return dict(json.loads(done.stdout))


def numpy_seconds(n: int, repeats: int) -> dict[str, float]:
    """NumPy on the same machine, for orientation: a matrix product and a copy of the ladder's default size."""
    a = np.ones((n, n), np.float32)
    x = np.ones(int(gpulab.kernels.ladder("copy").defaults()["n"]), np.float32)
    y = np.empty_like(x)
    return {
        "matmul": median_seconds(lambda: a @ a, repeats),
        "copy": median_seconds(lambda: np.copyto(y, x), repeats),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rungs as text."""
    lines = [f"{'ladder':<10} {'rung':<12} {'language':<9} {'first, s':>9} {'then, ms':>9} {'CPU, ms':>9}"]
    lines += [
        f"{row['ladder']:<10} {row['rung']:<12} {row['language']:<9} "
        f"{row['first_seconds']:9.2f} {row['seconds'] * 1e3:9.1f} {row['cpu_seconds'] * 1e3:9.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def comparison(report: dict[str, Any]) -> str:
    """The answers in sentences, each with its numbers."""
    simulated = report["simulator"]
    lines = [
        f"One output element per thread, {report['n']}^3, blocks of {report['tile']} x {report['tile']}. "
        f"Numba's simulator: {simulated['seconds_per_fma'] * 1e6:.2f} us per FMA (n = {simulated['n']})."
    ]
    lines += [_sentence(row, report) for row in report["matmul"]]
    if "missing" in report["pocl"]:
        lines.append(f"PoCL was not measured: {report['pocl']['missing']}")
    numpy = report["numpy"]
    lines.append(f"NumPy: matmul {numpy['matmul'] * 1e3:.1f} ms, copy {numpy['copy'] * 1e3:.1f} ms")
    return "\n".join(lines)


def _sentence(row: dict[str, Any], report: dict[str, Any]) -> str:
    text = (
        f"{row['rung']} ({row['language']}): {row['seconds'] * 1e3:.1f} ms, CPU {row['cpu_seconds'] * 1e3:.1f} ms; "
        f"{simulator_gain(row, report):,.0f} times Numba's simulator (at least {LEAST_GAIN_OVER_SIMULATOR:,} wanted)"
    )
    other = report["pocl"].get(row["rung"])
    if other:
        text += (
            f"; PoCL without counters and checks {other['seconds'] * 1e3:.1f} ms, CPU "
            f"{other['cpu_seconds'] * 1e3:.1f} ms: {other['seconds'] / row['seconds']:.2f} times our time"
        )
    return text


def simulator_gain(row: dict[str, Any], report: dict[str, Any]) -> float:
    """How many times faster than Numba's simulator, per FMA."""
    return float(report["simulator"]["seconds_per_fma"] * report["n"] ** 3 / row["seconds"])


def fast_enough(row: dict[str, Any], report: dict[str, Any]) -> bool:
    """Whether a matmul is as fast as wanted: far ahead of the simulator, and the textbook's no slower than PoCL."""
    other = report["pocl"].get(row["rung"]) if row["rung"] == "coalesced" else None
    other = other or {"seconds": np.inf}
    return simulator_gain(row, report) >= LEAST_GAIN_OVER_SIMULATOR and row["seconds"] <= other["seconds"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed of the emulated GPU, all counters and bounds checks on.")
    parser.add_argument("--json", type=Path, help="write the report here")
    parser.add_argument("--pocl-python", default=os.environ.get("POCL_PYTHON"), help="a Python with pyopencl[pocl]")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the median counts")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the matmul comparison; the best counts")
    parser.add_argument("--n", type=int, default=512, help="size of the matmul that is compared")
    parser.add_argument("--tile", type=int, default=32, help="block side of that matmul, here and in PoCL")
    parser.add_argument("--simulator-n", type=int, default=48, help="size that Numba's simulator can finish")
    return parser.parse_args()


def main() -> int:
    """Measure, show, write; 1 if a speed that is wanted was not reached."""
    options = parse()
    gpulab.use("A100")
    ours, theirs = matmuls(options)
    report: dict[str, Any] = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0))},
        "n": options.n,
        "tile": options.tile,
        "matmul": ours,
        "simulator": simulator(options.simulator_n),
        "pocl": theirs,
        "numpy": numpy_seconds(options.n, options.repeats),
        "rungs": all_rungs(options.repeats),
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    sys.stdout.write(f"{table(report['rungs'])}\n\n{comparison(report)}\n")
    return 0 if all(fast_enough(row, report) for row in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
