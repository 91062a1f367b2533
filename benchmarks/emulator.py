"""How fast the emulated GPU is: against PoCL and Numba's simulator, with and without counters, on one core and on all.

Every run has all bounds checks on, and all counters unless told otherwise. A machine that does other things as well
disturbs wall-clock times; so both sides take turns, the least of several runs counts, and CPU seconds (of all threads
together) stand beside and decide. First and cached launches run in processes of their own (`launch_worker.py`).
PoCL is optional and may live in another Python:

    python -m venv pocl-venv && pocl-venv/bin/pip install "pyopencl[pocl]"
    python benchmarks/emulator.py --pocl-python pocl-venv/bin/python --json emulator.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from workloads import Workload, workloads  # noqa: E402

import gpulab  # noqa: E402

LANGUAGES = ("cuda", "numba")
LEAST_GAIN_OVER_SIMULATOR = 10_000


def kernel_of(workload: Workload, language: str) -> Any:
    """The kernel in one of the two languages."""
    if language == "cuda":
        return gpulab.RawKernel((HERE / "kernels.cu").read_text(encoding="utf-8"), workload.kernel)
    import numba_kernels

    return getattr(numba_kernels, workload.kernel)


def least(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Least wall-clock seconds and least CPU seconds of so many calls."""
    times = []
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        action()
        times.append((time.perf_counter() - start, time.process_time() - cpu_start))
    return min(wall for wall, _ in times), min(cpu for _, cpu in times)


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let launches use so many OS threads; None leaves it to them."""
    before = os.environ.pop("GPULAB_THREADS", None)
    if count:
        os.environ["GPULAB_THREADS"] = str(count)
    try:
        yield
    finally:
        os.environ.pop("GPULAB_THREADS", None)
        if before:
            os.environ["GPULAB_THREADS"] = before


def time_workload(workload: Workload, language: str, repeats: int, *, all_modes: bool = True) -> dict[str, Any]:
    """Seconds of a workload with counters, and (`all_modes`) without them and on one core; results checked."""
    device, arguments = gpulab.current(), workload.arguments()
    bound = kernel_of(workload, language)[workload.grid, workload.block]

    def run(count: bool = True) -> None:
        device.launch(bound, arguments, count=count)

    run()
    if not workload.is_right(arguments, workload.output(arguments)):
        raise SystemExit(f"{workload.name} in {language} is wrong")
    wall, cpu = least(run, repeats)
    row = {"name": workload.name, "language": language, "work": workload.work, "seconds": wall, "cpu_seconds": cpu}
    if all_modes:
        with threads(1):
            row["one_core_seconds"], row["one_core_cpu_seconds"] = least(run, repeats)
        run(False)
        row["uncounted_seconds"], row["uncounted_cpu_seconds"] = least(lambda: run(False), repeats)
    return row


def rounds(options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All workloads here and in PoCL, in turns; the best of the rounds."""
    chosen = [each for each in workloads(options.scale) if options.only in each.name]
    ours: dict[tuple[str, str], dict[str, Any]] = {}
    theirs: dict[str, Any] = {}
    for _ in range(options.rounds):
        for workload in chosen:
            for language in LANGUAGES:
                row = time_workload(workload, language, options.repeats)
                keep_best(ours.setdefault((workload.name, language), row), row)
        found = pocl(options)
        theirs = theirs or found
        for name, row in found.get("rows", {}).items():
            keep_best(theirs["rows"][name], row)
    return list(ours.values()), theirs


def keep_best(kept: dict[str, Any], row: dict[str, Any]) -> None:
    """Lower the times of a row to those of another run."""
    for name, value in row.items():
        if name.endswith("seconds"):
            kept[name] = min(kept[name], value)


def pocl(options: argparse.Namespace) -> dict[str, Any]:
    """The workloads in PoCL; without it, how to get it."""
    numbers = [str(number) for number in (options.repeats, options.scale)]
    try:
        return worker([options.pocl_python or sys.executable, str(HERE / "pocl_worker.py"), *numbers, options.only], {})
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["it failed"])[-1]
        return {"missing": f"{reason}. Install pyopencl[pocl] in a virtual environment and pass --pocl-python."}


def simulator(n: int) -> dict[str, Any]:
    """The naive matmul in Numba's simulator, in a process of its own."""
    return worker([sys.executable, str(HERE / "simulator_worker.py"), str(n)], {"NUMBA_ENABLE_CUDASIM": "1"})


def launches(options: argparse.Namespace) -> list[dict[str, Any]]:
    """First and cached launch of each workload, and memory, in new processes with a new cache folder each."""
    rows = []
    for workload in workloads(options.scale):
        if options.only not in workload.name:
            continue
        for language in LANGUAGES:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, str(HERE / "launch_worker.py"), workload.name, language, str(options.scale)]
                variables = {"GPULAB_CACHE": folder}
                first, second = worker(command, variables), worker(command, variables)
            rows.append({"name": workload.name, "language": language, "first": first, "cached": second})
    return rows


def worker(command: list[str], variables: dict[str, str]) -> dict[str, Any]:
    """What a script prints as JSON."""
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, **variables}
    # Not in the repository's folders: a worker's Python may be another one, with nothing of ours on its path.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=Path.home())
    return dict(json.loads(done.stdout))


def table(rows: list[dict[str, Any]], rivals: dict[str, Any], simulated: dict[str, Any]) -> str:
    """The workloads as text: milliseconds of CPU time, and ratios of CPU times (of wall-clock times for cores)."""
    lines = [
        f"{'workload':<21} {'':<5} {'wall':>7} {'CPU':>7} {'uncounted':>9} {'PoCL':>7} "
        f"{'PoCL/ours':>9} {'counting':>8} {'2 cores':>7} {'simulator':>9}"
    ]
    for row in rows:
        other = rivals.get("rows", {}).get(row["name"])
        lines.append(
            f"{row['name']:<21} {row['language']:<5} {row['seconds'] * 1e3:7.1f} {row['cpu_seconds'] * 1e3:7.1f} "
            f"{row['uncounted_cpu_seconds'] * 1e3:9.1f} {_milliseconds(other)} {_ratio(pocl_gain(row, other), 9)} "
            f"{_ratio(row['cpu_seconds'] / row['uncounted_cpu_seconds'], 8)} "
            f"{_ratio(row['one_core_seconds'] / row['seconds'], 7)} {_gain_text(row, simulated)}"
        )
    return "\n".join(lines)


def _milliseconds(other: dict[str, float] | None) -> str:
    return f"{other['cpu_seconds'] * 1e3:7.1f}" if other else f"{'-':>7}"


def _ratio(value: float | None, width: int) -> str:
    return f"{value:{width}.2f}" if value is not None else "-".rjust(width)


def _gain_text(row: dict[str, Any], simulated: dict[str, Any]) -> str:
    return f"{simulator_gain(row, simulated):9,.0f}" if row["name"].startswith("sgemm") else f"{'':>9}"


def pocl_gain(row: dict[str, Any], other: dict[str, float] | None) -> float | None:
    """How many times PoCL's CPU time is ours."""
    return other["cpu_seconds"] / row["cpu_seconds"] if other else None


def simulator_gain(row: dict[str, Any], simulated: dict[str, Any]) -> float:
    """How many times faster than Numba's simulator, per FMA, by wall-clock."""
    return float(simulated["seconds_per_fma"] * row["work"] / row["seconds"])


def launch_table(rows: list[dict[str, Any]]) -> str:
    """What first and cached launches cost besides the run, as text: milliseconds, wall-clock and CPU; of it the PTX."""
    lines = [
        f"{'workload':<21} {'':<5} {'first':>6} {'CPU':>6} {'PTX':>6} {'cached':>7} {'CPU':>6} {'PTX':>6} {'run':>7} "
        f"{'peak, MiB':>9} {'arrays':>7}"
    ]
    for row in rows:
        first, cached = row["first"], row["cached"]
        lines.append(
            f"{row['name']:<21} {row['language']:<5} {_beside_run(first, '')} {_beside_run(first, '_cpu')} "
            f"{first['ptx_cpu'] * 1e3:6.0f} {_beside_run(cached, ''):>7} {_beside_run(cached, '_cpu')} "
            f"{cached['ptx_cpu'] * 1e3:6.0f} {cached['again'] * 1e3:7.1f} {first['peak_bytes'] / 2**20:9.0f} "
            f"{first['array_bytes'] / 2**20:7.0f}"
        )
    return "\n".join(lines)


def _beside_run(found: dict[str, float], kind: str) -> str:
    return f"{(found['launch' + kind] - found['again' + kind]) * 1e3:6.0f}"


def fast_enough(row: dict[str, Any], other: dict[str, float] | None, simulated: dict[str, Any]) -> bool:
    """Whether a workload is as fast as wanted."""
    gain = pocl_gain(row, other)
    ahead = not row["name"].startswith("sgemm") or simulator_gain(row, simulated) >= LEAST_GAIN_OVER_SIMULATOR
    return ahead and (gain is None or gain >= 1) and row["cpu_seconds"] <= 2 * row["uncounted_cpu_seconds"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed of the emulated GPU, all counters and bounds checks on.")
    parser.add_argument("--json", type=Path, help="write the report here")
    parser.add_argument("--pocl-python", default=os.environ.get("POCL_PYTHON"), help="a Python with pyopencl[pocl]")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the best counts")
    parser.add_argument("--rounds", type=int, default=2, help="rounds in which both sides take turns; the best counts")
    parser.add_argument("--scale", type=int, default=1, help="divides all sizes; a power of 2")
    parser.add_argument("--only", default="", help="only workloads with this in their name")
    parser.add_argument("--launches", action="store_true", help="first and cached launches, in place of runs")
    parser.add_argument("--simulator-n", type=int, default=48, help="matrix size that Numba's simulator can finish")
    return parser.parse_args()


def main() -> int:
    """Measure, show, write; 1 if a speed that is wanted was not reached."""
    options = parse()
    gpulab.use("A100")
    report: dict[str, Any] = {"processor": platform.processor(), "cores": len(os.sched_getaffinity(0))}
    if options.launches:
        report["launches"] = launches(options)
        text, good = launch_table(report["launches"]), True
    else:
        ours, theirs = rounds(options)
        simulated = simulator(options.simulator_n)
        report |= {"workloads": ours, "pocl": theirs, "simulator": simulated}
        text = table(ours, theirs, simulated)
        if "missing" in theirs:
            text += f"\nPoCL was not measured: {theirs['missing']}"
        good = all(fast_enough(row, theirs.get("rows", {}).get(row["name"]), simulated) for row in ours)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
