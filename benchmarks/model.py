"""The time model against times that others measured and published.

Any Python with gpulab runs it: ``python benchmarks/model.py``. It prints each kernel with the published and the
modeled time and their ratio, then the mean error. Nothing in the model was fitted to these times. The published
sources state no SM clock; the model takes the boost clock, so ratios within a ladder say more than single times. Large
launches are sampled. The published times are those of te42kyfo/gpu-benches (streams) and of blog posts and notes on
the RTX 3090.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import gpulab
from gpulab.kernels import ladder

SAMPLE = 256

STREAMS = """
#define I (blockIdx.x * (long)blockDim.x + threadIdx.x)
extern "C" __global__ void init(double *a, double *b, double *c) { a[I] = 1.5; }
extern "C" __global__ void read(double *a, double *b, double *c) { if (a[I] == 3.25) b[I] = 1.0; }
extern "C" __global__ void scale(double *a, double *b, double *c) { a[I] = b[I] * 3.25; }
extern "C" __global__ void triad(double *a, double *b, double *c) { a[I] = b[I] + c[I] * 3.25; }
"""
STREAM_BYTES = {"init": 8, "read": 8, "scale": 16, "triad": 24}
# te42kyfo/gpu-benches, gpu-stream at full occupancy, GB/s.
STREAM_RATES = {
    "V100": {"init": 895, "read": 866, "scale": 802, "triad": 814},
    "A100": {"init": 1503, "read": 1490, "scale": 1381, "triad": 1360},
    "H200": {"init": 3884, "read": 2756, "scale": 3165, "triad": 3534},
}

WALKS = """
#define X (blockIdx.x * blockDim.x + threadIdx.x)
#define Y (blockIdx.y * blockDim.y + threadIdx.y)
extern "C" __global__ void write_coalesced(float *a, float *b, int n) { b[Y * n + X] = a[X * n + Y]; }
extern "C" __global__ void read_coalesced(float *a, float *b, int n) { b[X * n + Y] = a[Y * n + X]; }
"""


@dataclass(frozen=True)
class Case:
    """One published time, and the model's."""

    group: str
    kernel: str
    published_s: float
    modeled_s: float

    @property
    def ratio(self) -> float:
        """Modeled over published."""
        return self.modeled_s / self.published_s


def streams() -> Iterator[Case]:
    """Reads and writes of 64 Mi doubles, one element per thread."""
    n = 1 << 26
    arrays = [np.zeros(n) for _ in range(3)]
    for name, rates in STREAM_RATES.items():
        for kernel, gb_per_s in rates.items():
            launch = gpulab.RawKernel(STREAMS, kernel)[n // 256, 256]
            found = gpulab.profile(launch, *arrays, gpu=name, sample_blocks=SAMPLE)
            yield Case(f"stream, {name}", kernel, n * STREAM_BYTES[kernel] / gb_per_s / 1e9, found.time.seconds)


def walks() -> Iterator[Case]:
    """A 12,800 x 12,800 float matrix walked along rows on one side and along columns on the other."""
    n = 12_800
    arrays = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    for kernel, milliseconds in (("write_coalesced", 2.92), ("read_coalesced", 5.34)):
        launch = gpulab.RawKernel(WALKS, kernel)[(n // 32, n // 32), (32, 32)]
        found = gpulab.profile(launch, *arrays, np.int32(n), gpu="RTX 3090", sample_blocks=SAMPLE)
        yield Case("coalescing 12800, RTX 3090", kernel, milliseconds / 1e3, found.time.seconds)


def of_ladder(group: str, gpu: str, name: str, rungs: dict[str, float], **parameters: int) -> Iterator[Case]:
    """Rungs of one of our ladders in CUDA C++, with their published times in s."""
    problem = ladder(name).at(**parameters)
    for rung, seconds in rungs.items():
        launches = problem.attempt(rung, "cuda").launches
        times = [
            gpulab.profile(bound, *arguments, gpu=gpu, sample_blocks=SAMPLE // 8).time.seconds
            for bound, arguments in launches
        ]
        yield Case(f"{group}, {gpu}", rung, seconds, sum(times))


def cases() -> Iterator[Case]:
    """All published times, with the model's."""
    yield from streams()
    yield from walks()
    yield from of_ladder(
        "transpose 8192", "RTX 3090", "transpose", {"tiled": 1.10e-3, "padded": 0.92e-3}, n=8192, block_rows=32
    )
    flop = 2 * 4096**3
    rates = {"naive": 0.278e12, "coalesced": 1.722e12, "tiled": 2.66e12}
    times = {rung: flop / rate for rung, rate in rates.items()}
    yield from of_ladder("SGEMM 4096", "RTX 3090", "matmul", times, n=4096)


def main() -> None:
    """Print the table."""
    found = []
    print(f"{'':28}{'kernel':18}{'published':>12}{'modeled':>12}{'ratio':>8}")
    for case in cases():
        found.append(case)
        print(
            f"{case.group:28}{case.kernel:18}{case.published_s * 1e3:9.3f} ms{case.modeled_s * 1e3:9.3f} ms{case.ratio:8.2f}",
            flush=True,
        )
    errors = [abs(case.ratio - 1) for case in found]
    spread = math.exp(sum(abs(math.log(case.ratio)) for case in found) / len(found))
    print(f"mean error {100 * sum(errors) / len(errors):.0f} %, typical factor {spread:.2f}, {len(found)} kernels")


if __name__ == "__main__":
    main()
