"""Launch one workload in a new process. Run by `emulator.py`; writes one JSON document to stdout.

Usage: python launch_worker.py WORKLOAD LANGUAGE SCALE
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np
from emulator import kernel_of
from workloads import workloads

import gpulab


def timed(action: Any) -> np.ndarray:
    """Wall-clock and CPU seconds of a call."""
    start, cpu_start = time.perf_counter(), time.process_time()
    action()
    return np.array([time.perf_counter() - start, time.process_time() - cpu_start])


def main(name: str, language: str, scale: int) -> None:
    """Times of compilation to PTX, of the whole first launch and of a second one, and the process's peak memory."""
    workload = next(each for each in workloads(scale) if each.name == name)
    device = gpulab.use("A100")
    _warm_numba(language, device)
    arguments = workload.arguments()
    bound = kernel_of(workload, language)[workload.grid, workload.block]
    ptx = timed(lambda: bound.kernel.compile(arguments, device.gpu.compute_capability))
    launch = ptx + timed(lambda: device.launch(bound, arguments, count=True))
    again = timed(lambda: device.launch(bound, arguments, count=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert workload.is_right(arguments, workload.output(arguments))
    times = {"ptx": ptx, "launch": launch, "again": again}
    found = {name: wall for name, (wall, _) in times.items()} | {f"{name}_cpu": cpu for name, (_, cpu) in times.items()}
    found["peak_bytes"] = peak
    found["array_bytes"] = sum(each.nbytes for each in arguments if isinstance(each, np.ndarray))
    json.dump(found, sys.stdout)


def _warm_numba(language: str, device: Any) -> None:
    """Numba's own first compilation in a process takes 1.5 s, whatever the kernel; nothing of it is ours."""
    if language != "numba":
        return
    from gpulab import cuda

    def first(x):
        x[0] = 1

    cuda.jit(first)[1, 1].kernel.compile([np.zeros(1)], device.gpu.compute_capability)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
