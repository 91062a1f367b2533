"""Latencies of each level, cycles of loads that hit L1, and the data stage of shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpulab.devices.protocol import Device
from validation.records import BENCH_CLOCKS_HZ, Launch, Point, zeros

BENCHES = "te42kyfo/gpu-benches"
# gpu-strides: SM cycles of a warp's load at each stride, data in L1, and the clock.
FLOAT_STRIDES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 24, 32, 33, 48, 64)
FLOAT_CYCLES = {
    "A100": (1.02, 1.02, 2.00, 1.63, 4.00, 2.20, 2.36, 2.67, 8.0, 3.64, 4.45, 16.0, 8.0, 32.0, 8.8, 16.0, 32.0),
    "A40": (2.00, 2.00, 2.00, 2.00, 4.00, 2.20, 2.36, 2.67, 8.0, 3.64, 4.45, 16.0, 8.0, 32.0, 8.8, 16.0, 32.0),
    "H200": (1.01, 1.01, 2.01, 1.63, 4.01, 2.00, 2.32, 2.41, 8.0, 3.41, 4.60),
}
DOUBLE_STRIDES = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16)
DOUBLE_CYCLES = {
    "A100": (2.01, 2.01, 4.00, 2.42, 8.0, 3.34, 4.04, 16.0, 8.0, 32.0),
    "A40": (8.0, 8.0, 8.2, 8.0, 8.0, 8.0, 8.0, 16.0, 8.3, 32.0),
    "H200": (2.01, 2.01, 4.01, 2.32, 8.0, 3.16, 4.32, 16.0, 8.0),
}

AIK, YK = "markdewing/AI_kernels latency", "YKTian-x2b/AmpereArchViaMicroBenchMark"
# Cycles of a dependent load: shared memory, L1, L2 and DRAM, each None where the source has none.
LATENCIES = (
    ("V100", f"{BENCHES} cuda-latency", (None, 29.9, 215.0, 434.8), BENCH_CLOCKS_HZ["V100"]),
    ("A100", f"{BENCHES} cuda-latency", (None, 36.1, 213.0, 572.2), BENCH_CLOCKS_HZ["A100"]),
    ("L40", f"{BENCHES} gpu-latency", (None, 36.1, 276.5, 631.1), BENCH_CLOCKS_HZ["L40"]),
    ("H100 PCIe", f"{BENCHES} gpu-latency", (None, 34.2, 265.4, 649.9), BENCH_CLOCKS_HZ["H100 PCIe"]),
    ("A100-80GB", AIK, (None, 39.0, 210.0, 550.0), None),
    ("RTX 4090", AIK, (None, 40.0, 296.0, 636.0), None),
    ("H100", AIK, (None, 40.0, 291.0, 700.0), None),
    ("GH200", AIK, (None, 40.0, 281.0, 690.0), None),
    ("B200", AIK, (None, 40.0, 295.0, 860.0), None),
    ("RTX 5090", AIK, (None, 44.0, 360.0, 936.0), None),
    ("RTX 3060", YK, (23.0, 33.0, 219.0, 515.0), None),
    ("A100", YK, (23.0, None, None, None), None),
    ("A100", "Luo et al., arXiv 2402.13499", (29.0, None, None, None), None),
)
LINE_POINTERS = 16
SHARED_LOADS_MADE = 1 << 11
CHASE_KIB = {"L1": 8, "L2": 512, "DRAM": 128 << 10}
# So many rounds that what the first one misses is a per cent or two; but from DRAM not even one.
CHASE_STEPS = {"shared": 1 << 12, "L1": 1 << 15, "L2": 1 << 18, "DRAM": 1 << 14}
# Bytes per cycle and SM of stores to shared memory of 4, 8 and 16 bytes for each thread.
SHARED_STORES = {"RTX 3060": {"float": 62.8, "float2": 126.1, "float4": 114.0}}
# Cycles of a warp's load of 4 bytes for each lane.
SHARED_LOADS = {"T4": 2.0}


def strides() -> list[Point]:
    """Loads that hit L1: at some strides lanes meet in banks, at others they touch many lines."""
    tables = (("float", 4, FLOAT_STRIDES, FLOAT_CYCLES), ("double", 8, DOUBLE_STRIDES, DOUBLE_CYCLES))
    return [
        _stride(kind, size, stride, gpu, cycles)
        for kind, size, at, table in tables
        for gpu, curve in table.items()
        for stride, cycles in zip(at, curve, strict=False)
    ]


def _stride(kind: str, size: int, stride: int, gpu: str, cycles: float) -> Point:
    loads = 1 << 12

    def arguments(_: object) -> Sequence[Any]:
        dtype = np.dtype(f"f{size}")
        return zeros(64 * stride + 32, dtype), zeros(1, dtype), *map(np.int32, (stride, loads, 0))

    launch = Launch("strides.cu", f"walk<{kind}>", 1, 1024, arguments)
    return Point(
        "loads that hit L1",
        f"{kind}s, stride {stride}",
        gpu,
        f"{BENCHES} gpu-strides",
        lambda _: launch,
        cycles,
        "cycles",
        loads * 32,
        BENCH_CLOCKS_HZ[gpu],
        amortized=True,
    )


def latencies() -> list[Point]:
    """One warp that follows pointers through a buffer of each level's size."""
    return [
        Point("latencies", level, gpu, source, _chase(level), value, "cycles", CHASE_STEPS[level], clock, True)
        for gpu, source, values, clock in LATENCIES
        for level, value in zip(("shared", "L1", "L2", "DRAM"), values, strict=True)
        if value is not None
    ]


def _chase(level: str) -> Any:
    def through_shared(_: object) -> Sequence[Any]:
        return zeros(1, np.uint32), np.int32(CHASE_STEPS["shared"])

    def through_global(device: Device) -> Sequence[Any]:
        pointers = CHASE_KIB[level] << 10 >> 3
        cells = device.device_array(pointers, np.uint64)
        lines = pointers // LINE_POINTERS
        # A random cycle through all lines, or through as many as are visited.
        order = np.random.default_rng(0).permutation(lines)[: CHASE_STEPS[level] + 1].astype(np.int32) * LINE_POINTERS
        order[order == 0], order[0] = order[0], 0
        to = np.roll(order, -1)
        link = Launch("caches.cu", "link", -(-len(order) // 256), 256, lambda _: ()).bound()
        device.launch(link, (cells, order, to, np.int32(len(order))))
        return cells, zeros(1, np.uint64), np.int32(CHASE_STEPS[level])

    if level == "shared":
        return lambda _: Launch("caches.cu", "chase_shared", 1, 32, through_shared)
    return lambda _: Launch("caches.cu", "chase", 1, 32, through_global)


def shared_memory() -> list[Point]:
    """What the data stage of shared memory moves in a cycle."""
    found = []
    for gpu, rates in SHARED_STORES.items():
        for kind, rate in rates.items():
            size = {"float": 4, "float2": 8, "float4": 16}[kind]
            found.append(_stores(gpu, kind, size, rate))
    return found + [_loads(gpu, cycles) for gpu, cycles in SHARED_LOADS.items()]


def _loads(gpu: str, cycles: float) -> Point:
    source, amount = "measured on a Turing GPU: half a wavefront per cycle", 32.0 * SHARED_LOADS_MADE
    name, launch = "loads of 32 bits, a warp's", _strided(1)
    return Point("shared memory", name, gpu, source, lambda _: launch, cycles, "cycles", amount, amortized=True)


def _stores(gpu: str, kind: str, size: int, bytes_per_cycle: float) -> Point:
    stores = 1 << 12
    launch = Launch(
        "caches.cu", f"store_shared<{kind}>", 1, 1024, lambda _: (zeros(1024 * size // 4), np.int32(stores))
    )
    name, amount = f"stores of {8 * size} bits, a warp's", float(stores * 32)
    cycles = 32 * size / bytes_per_cycle
    return Point("shared memory", name, gpu, YK, lambda _: launch, cycles, "cycles", amount, amortized=True)


def _strided(stride: int) -> Launch:
    loads = np.int32(SHARED_LOADS_MADE)
    return Launch("caches.cu", "load_strided", 1, 1024, lambda _: (zeros(1024), np.int32(stride), loads))


def unpublished() -> list[tuple[str, str, Launch]]:
    """Group, name and launch of what no public figure was found for; measured where there is a GPU."""
    blocks, block, adds = 1024, 256, np.int32(16)

    def atomics(kernel: str) -> Launch:
        return Launch(
            "caches.cu", kernel, blocks, block, lambda _: (zeros(blocks * block, np.int32), adds), sample_blocks=48
        )

    conflicts = [
        ("bank conflicts", f"shared loads, stride {stride}", _strided(stride)) for stride in (1, 2, 4, 8, 16, 32)
    ]
    return [
        *conflicts,
        ("atomics", "all threads add to one word", atomics("add_to_one")),
        ("atomics", "each thread adds to a word of its own", atomics("add_to_own")),
    ]


def points() -> list[Point]:
    """All of this module."""
    return strides() + latencies() + shared_memory()
