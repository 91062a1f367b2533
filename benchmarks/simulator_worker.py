"""Time the naive matmul rung in Numba's CUDA simulator. Run by `emulator.py`; writes one JSON document to stdout.

Usage: NUMBA_ENABLE_CUDASIM=1 python simulator_worker.py N
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module


def main(n: int) -> None:
    """Run the rung once at n x n x n and report seconds per FMA."""
    # The ladder's own source, unchanged, but with the simulator in place of gpulab's kernels.
    import gpulab

    gpulab.cuda = sys.modules["gpulab.cuda"] = import_module("numba.cuda")
    problem = gpulab.kernels.ladder("matmul").at(n=n, tile=8)
    attempt = problem.attempt("naive", "numba")
    start = time.perf_counter()
    for bound, arguments in attempt.launches:
        bound(*arguments)
    seconds = time.perf_counter() - start
    assert problem.judge(attempt.arrays).correct
    json.dump({"n": n, "seconds": seconds, "seconds_per_fma": seconds / n**3}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]))
