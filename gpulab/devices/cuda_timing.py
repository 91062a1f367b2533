"""Time a kernel on the CUDA GPU, with events: warm-up, a cold L2 cache and the same data for every run, many runs.

The time between the two events holds the kernel alone. The arrays end as if the kernel had run once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.devices.cuda import CudaDevice
    from gpulab.devices.cuda_memory import CudaBinding

_WARM_UPS = 2
_LEAST_RUNS, _MOST_RUNS = 7, 50
_ENOUGH_S = 0.3  # of measured time, after the least number of runs


def measure(device: CudaDevice, binding: CudaBinding, run: Callable[[], None]) -> tuple[float, ...]:
    """Seconds of each run."""
    from gpulab.devices.cuda_memory import CudaBuffer

    cuda = device.cupy.cuda
    # Twice the cache, so that nothing of the arrays can stay in it whatever its replacement policy is.
    flush = CudaBuffer(device.cupy, 2 * device.l2_bytes)
    start, stop = cuda.Event(), cuda.Event()
    binding.save()
    samples: list[float] = []
    for number in range(_WARM_UPS + _MOST_RUNS):
        binding.restore()
        cuda.runtime.memset(flush.address, number % 256, flush.nbytes)
        device.synchronize()
        start.record()
        run()
        stop.record()
        device.synchronize()
        if number >= _WARM_UPS:
            samples.append(cuda.get_elapsed_time(start, stop) * 1e-3)
        if len(samples) >= _LEAST_RUNS and sum(samples) >= _ENOUGH_S:
            break
    return tuple(samples)
