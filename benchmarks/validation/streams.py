"""Streams through DRAM and L2: at full occupancy, against occupancy, and so short that launching takes most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpulab.gpus import Gpu
from validation.records import BENCH_CLOCKS_HZ, Launch, Point, zeros

BENCHES = "te42kyfo/gpu-benches"
# Fewer than the source's, which is why launching is left out: there it is less than 1 % of the time.
ELEMENTS = 1 << 24
SAMPLE = 64
STREAMS = {"init": 1, "read": 1, "scale": 2, "triad": 3}

# gpu-stream with two blocks on each SM, GB/s: threads of a block, then init, read, scale and triad. The last line of each is
# full occupancy.
AGAINST_OCCUPANCY = {
    "V100": (
        (32, 153, 72, 128, 180),
        (64, 306, 139, 244, 323),
        (128, 595, 262, 423, 545),
        (256, 895, 490, 673, 765),
        (512, 895, 746, 784, 800),
        (1024, 895, 866, 802, 814),
    ),
    "A100": (
        (32, 159, 81, 151, 210),
        (64, 407, 158, 291, 403),
        (128, 788, 304, 548, 743),
        (256, 1473, 579, 954, 1231),
        (512, 1503, 1042, 1338, 1359),
        (1024, 1503, 1490, 1381, 1360),
    ),
    "A40": (
        (32, 201, 82, 154, 219),
        (64, 397, 160, 290, 400),
        (128, 679, 304, 514, 625),
        (256, 679, 552, 643, 660),
        (512, 679, 679, 655, 655),
        (768, 679, 679, 652, 653),
    ),
    "L40": (
        (32, 322, 163, 298, 425),
        (64, 643, 320, 549, 702),
        (128, 845, 615, 772, 769),
        (256, 846, 844, 792, 795),
        (512, 846, 844, 778, 798),
        (768, 846, 844, 770, 768),
    ),
    "H100 PCIe": (
        (32, 228, 96, 183, 254),
        (64, 452, 189, 341, 459),
        (128, 888, 368, 607, 821),
        (256, 1686, 702, 1037, 1399),
        (512, 2017, 1261, 1583, 1675),
        (1024, 2016, 1942, 1704, 1832),
    ),
    "H200": (
        (32, 297, 123, 240, 334),
        (64, 590, 244, 463, 638),
        (128, 1163, 485, 852, 1129),
        (256, 2196, 935, 1395, 1905),
        (512, 3670, 1707, 2263, 2919),
        (1024, 3884, 2756, 3165, 3534),
    ),
}
# The same at full occupancy only.
FULL = {"A100-80GB": (1880, 1769, 1732, 1759), "GH200": (3942, 2775, 3174, 3783)}

# gpu-small-kernels, launches one after the other without a graph, blocks of 256: elements and GB/s.
SMALL = {
    "A100-80GB": ((4096, 24), (8182, 49), (16350, 97)),
    "A40": ((4096, 32), (8234, 65), (16562, 125)),
    "L40": ((4096, 40), (8182, 80), (16350, 160)),
    "H200": ((4096, 27), (8234, 51), (16562, 104)),
}
# gpu-l2-cache, data sets of 512 KiB for each block: pieces and GB/s. The last is more than any L2 holds.
THROUGH_L2 = {
    "A100-80GB": ((16, 5436.5), (512, 1838.4)),
    "L40": ((16, 5331.9), (512, 841.8)),
    "H200": ((16, 10251.9), (512, 3887.6)),
}


def _arrays(_: object) -> tuple[Any, ...]:
    return zeros(ELEMENTS, np.float64), zeros(ELEMENTS, np.float64), zeros(ELEMENTS, np.float64)


def _two_blocks(kernel: str, block: int) -> Any:
    def launch(gpu: Gpu) -> Launch:
        # So much that a third block finds no room.
        shared = gpu.shared_bytes_per_sm // 2 - 2048
        return Launch("streams.cu", kernel, ELEMENTS // block, block, _arrays, shared, sample_blocks=SAMPLE)

    return launch


def _rate(group: str, name: str, gpu: str, source: str, launch: Any, rate: float, streams: int) -> Point:
    amount, clock = 8.0 * ELEMENTS * streams, BENCH_CLOCKS_HZ.get(gpu)
    return Point(group, name, gpu, f"{BENCHES} {source}", launch, rate, "GB/s", amount, clock, amortized=True)


def full_occupancy() -> list[Point]:
    """Four streams as fast as they get."""
    rates = {gpu: curve[-1][1:] for gpu, curve in AGAINST_OCCUPANCY.items()} | FULL

    def launch(kernel: str) -> Launch:
        return Launch("streams.cu", kernel, ELEMENTS // 256, 256, _arrays, sample_blocks=SAMPLE)

    return [
        _rate(
            "streams at full occupancy", kernel, gpu, "gpu-stream", lambda _, kernel=kernel: launch(kernel), rate, count
        )
        for gpu, values in rates.items()
        for (kernel, count), rate in zip(STREAMS.items(), values, strict=True)
    ]


def against_occupancy() -> list[Point]:
    """The same with two blocks of 32 to 1024 threads on each SM."""
    return [
        _rate(
            "streams against occupancy",
            f"{kernel}, 2 x {block} threads",
            gpu,
            "gpu-stream",
            _two_blocks(kernel, block),
            rate,
            count,
        )
        for gpu, curve in AGAINST_OCCUPANCY.items()
        for block, *rates in curve[:-1]
        for (kernel, count), rate in zip(STREAMS.items(), rates, strict=True)
    ]


def small_kernels() -> list[Point]:
    """Launches one after the other that move so little that launching is most of their time."""

    def launch(n: int) -> Launch:
        def arguments(_: object) -> Sequence[Any]:
            return zeros(n, np.float64), zeros(n, np.float64), np.int32(n)

        return Launch("streams.cu", "scale_some", n // 256 + 1, 256, arguments)

    return [
        Point(
            "small launches back to back",
            f"scale, about {round(n / 4096) * 64} KiB",
            gpu,
            f"{BENCHES} gpu-small-kernels",
            lambda _, n=n: launch(n),
            rate,
            "GB/s",
            16 * n,
            BENCH_CLOCKS_HZ.get(gpu),
        )
        for gpu, curve in SMALL.items()
        for n, rate in curve
    ]


def through_l2() -> list[Point]:
    """Blocks of 1024 threads that read the same pieces of data again and again."""
    blocks, loads = 100_000, 64

    def launch(pieces: int) -> Launch:
        def arguments(_: object) -> Sequence[Any]:
            return zeros(loads * pieces * 1024, np.float64), zeros(1, np.float64), np.int32(pieces)

        return Launch("streams.cu", f"read_pieces<{loads}>", blocks, 1024, arguments, sample_blocks=24)

    return [
        Point(
            "reads through L2",
            f"{pieces // 2} MiB",
            gpu,
            f"{BENCHES} gpu-l2-cache",
            lambda _, pieces=pieces: launch(pieces),
            rate,
            "GB/s",
            8.0 * loads * 1024 * blocks,
            BENCH_CLOCKS_HZ.get(gpu),
        )
        for gpu, curve in THROUGH_L2.items()
        for pieces, rate in curve
    ]


def points() -> list[Point]:
    """All of this module."""
    return full_occupancy() + against_occupancy() + small_kernels() + through_l2()
