"""Arithmetic: latency and throughput by independent chains and warps, and the way from memory-bound to compute-bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpulab.gpus import Gpu
from validation.records import Launch, Point, zeros

BENCHES = "te42kyfo/gpu-benches"
GUIDE = "CUDA C++ Programming Guide, throughput of native arithmetic instructions"
# cuda-incore on a V100 at 1.38 GHz: SM cycles for each operation of a warp, by warps on the SM and independent chains.
INCORE_CLOCK = 1.38e9
CHAINS = (1, 2, 4, 8)
FMA_F64 = {
    1: (8.67, 4.63, 4.66, 4.97),
    2: (4.29, 2.32, 2.33, 2.48),
    4: (2.14, 1.16, 1.16, 1.24),
    8: (1.08, 1.05, 1.08, 1.14),
    16: (1.03, 1.04, 1.08, 1.14),
    32: (1.03, 1.04, 1.08, 1.14),
}
DIVISION = {1: 111.55, 4: 27.88, 32: 7.51}
ROOT = {1: 101.26, 4: 25.31, 32: 9.61}
# Results of an SM per cycle: FP32 multiply-adds, exponentials, FP64 multiply-adds.
THROUGHPUT = {
    "V100": (64, 16, 32),
    "T4": (64, 16, 2),
    "A100": (64, 16, 32),
    "H100": (128, 16, 64),
    "RTX 3090": (128, 16, 2),
    "RTX 4090": (128, 16, 2),
}
# gpu-roofline, float: multiply-adds for each pair of floats, GB/s and the clock meanwhile.
INTENSITY = {
    "A100": (
        (0, 1372, 1.41e9),
        (4, 1363, 1.41e9),
        (24, 1322, 1.41e9),
        (40, 1284, 1.41e9),
        (48, 1240, 1.41e9),
        (56, 1150, 1.41e9),
        (72, 934, 1.41e9),
        (96, 723, 1.41e9),
        (128, 553, 1.41e9),
        (208, 358, 1.41e9),
    ),
    "A40": (
        (0, 679, 1.74e9),
        (8, 679, 1.74e9),
        (24, 679, 1.74e9),
        (48, 677, 1.74e9),
        (72, 675, 1.74e9),
        (96, 672, 1.725e9),
        (112, 664, 1.68e9),
        (128, 630, 1.64e9),
        (160, 518, 1.65e9),
        (208, 417, 1.665e9),
        (256, 344, 1.67e9),
    ),
    "L40": (
        (0, 844, 2.52e9),
        (8, 844, 2.52e9),
        (48, 843, 2.52e9),
        (96, 843, 2.52e9),
        (128, 841, 2.43e9),
        (200, 829, 2.235e9),
        (256, 724, 2.115e9),
        (320, 596, 2.16e9),
        (400, 498, 2.19e9),
    ),
    "H200": (
        (0, 3759, 1.98e9),
        (8, 3760, 1.98e9),
        (16, 3735, 1.98e9),
        (24, 3629, 1.98e9),
        (32, 3232, 1.98e9),
        (40, 2690, 1.98e9),
        (64, 2204, 1.98e9),
        (96, 1578, 1.98e9),
        (128, 1213, 1.98e9),
        (208, 784, 1.98e9),
        (400, 425, 1.98e9),
    ),
}
PAIRS = 128


def _one_block(kernel: str, dtype: type, warps: int, steps: int, *numbers: float) -> Launch:
    def arguments(_: object) -> Sequence[Any]:
        return zeros(32 * warps, dtype), *map(dtype, numbers), np.int32(steps)

    return Launch("arithmetic.cu", kernel, 1, 32 * warps, arguments)


def _incore(name: str, launch: Launch, warps: int, operations: int, cycles: float) -> Point:
    source, amount = f"{BENCHES} cuda-incore", float(operations * warps)
    name = f"{name}, {warps} warp{'s' * (warps > 1)}"
    group = "chains of arithmetic"
    return Point(group, name, "V100", source, lambda _: launch, cycles, "cycles", amount, INCORE_CLOCK, amortized=True)


def chains() -> list[Point]:
    """FP64 on a V100, in one block on one SM."""
    steps = 512
    found = [
        _incore(
            f"DFMA, {ilp} chain{'s' * (ilp > 1)}",
            _one_block(f"multiply_add<double, {ilp}>", np.float64, warps, steps, 0.5, 1.0),
            warps,
            ilp * steps,
            value,
        )
        for warps, row in FMA_F64.items()
        for ilp, value in zip(CHAINS, row, strict=True)
    ]
    for kernel, name, table in (("divide", "division of doubles", DIVISION), ("root", "root of doubles", ROOT)):
        found += [
            _incore(name, _one_block(f"{kernel}<1>", np.float64, warps, 128, 3.0, 2.0), warps, 128, value)
            for warps, value in table.items()
        ]
    return found


def throughput() -> list[Point]:
    """32 warps of independent chains: the rates that NVIDIA documents."""
    steps = 512
    launches = {
        "FFMA": _one_block("multiply_add<float, 4>", np.float32, 32, steps, 0.5, 1.0),
        "MUFU (ex2)": _one_block("exponentials", np.float32, 32, steps, 0.5),
        "DFMA": _one_block("multiply_add<double, 4>", np.float64, 32, steps, 0.5, 1.0),
    }
    return [
        Point(
            "throughput of arithmetic",
            name,
            gpu,
            GUIDE,
            lambda _, launch=launch: launch,
            32 / rate,
            "cycles",
            32.0 * 4 * steps,
            amortized=True,
        )
        for gpu, rates in THROUGHPUT.items()
        for (name, launch), rate in zip(launches.items(), rates, strict=True)
    ]


def _blocks(gpu: Gpu) -> int:
    return gpu.sm_count * (gpu.max_warps_per_sm // 8)


def _sweep(fmas: int) -> Any:
    def launch(gpu: Gpu) -> Launch:
        def arguments(_: object) -> Sequence[Any]:
            size = _blocks(gpu) * 256 * PAIRS
            return zeros(size), zeros(size), zeros(_blocks(gpu)), np.int32(PAIRS)

        return Launch("arithmetic.cu", f"intensity<{fmas}>", _blocks(gpu), 256, arguments, sample_blocks=6)

    return launch


def intensity() -> list[Point]:
    """More and more multiply-adds for each float that is loaded, with three different sources each."""
    return [
        Point(
            "arithmetic intensity",
            f"{fmas} FFMA for each pair of floats",
            gpu,
            f"{BENCHES} gpu-roofline",
            _sweep(fmas),
            rate,
            "GB/s",
            lambda gpu: 8.0 * 256 * PAIRS * _blocks(gpu),
            clock,
            amortized=True,
        )
        for gpu, curve in INTENSITY.items()
        for fmas, rate, clock in curve
    ]


def points() -> list[Point]:
    """All of this module."""
    return intensity() + chains() + throughput()
