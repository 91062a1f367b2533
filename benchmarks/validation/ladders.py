"""Public ladders: times of others for the same steps. The kernels are our own; only order and speed-ups can be compared.

No source states its SM clock, and our kernels differ from theirs in details, so single times are information only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from validation.records import Dims, Launch, PublicLadder, Rung, zeros

SIDE = 4096
FLOP = 2 * SIDE**3
REDUCED = 32 << 20

# TFLOP/s on an RTX 3090.
ON_RTX3090 = {
    "uncoalesced": 0.278129,
    "coalesced": 1.7218,
    "block tile": 2.66157,
    "1-D thread tile": 8.91318,
    "2-D thread tile": 13.0247,
    "vectorized": 15.027,
    "a transposed": 19.6688,
    "warp tile": 20.1649,
}
# TFLOP/s on a V100-class GPU.
ON_V100 = {
    "coalesced": 2.253,
    "block tile": 4.217,
    "1-D thread tile": 7.992,
    "2-D thread tile": 11.538,
    "vectorized": 12.169,
    "prefetched": 13.213,
}
# Microseconds on a V100.
REDUCTION = {
    "divergent": 804.187,
    "conflicting": 506.365,
    "sequential": 397.886,
    "added on load": 213.182,
    "last warp unrolled": 169.215,
    "unrolled": 166.752,
    "many for each": 166.656,
    "shuffled": 166.0,
}


def sgemm_launch(kernel: str, tile: int, block: Dims, n: int = SIDE, sample_blocks: int | None = None) -> Launch:
    """A product of two n x n matrices by blocks that make `tile` x `tile` elements each."""

    def arguments(_: object) -> Sequence[Any]:
        return zeros((n, n)), zeros((n, n)), zeros((n, n)), np.int32(n)

    return Launch("sgemm.cu", kernel, (n // tile, n // tile), block, arguments, sample_blocks=sample_blocks)


#: Kernel, tile and block of each rung. Tiles on the RTX 3090 are 16 deep, those on the V100 8, as in the sources.
SGEMM: dict[str, tuple[str, int, Dims]] = {
    "uncoalesced": ("uncoalesced", 32, (32, 32)),
    "coalesced": ("coalesced", 32, (32, 32)),
    "block tile": ("block_tile<32>", 32, (32, 32)),
    "1-D thread tile": ("thread_tile_1d<64, 64, 8, 8>", 64, 512),
    "2-D thread tile": ("thread_tile_2d<128, 128, 16, 8, 8>", 128, 256),
    "vectorized": ("vectorized<128, 128, 16, 8, 8>", 128, 256),
    "a transposed": ("a_transposed<128, 128, 16, 8, 8>", 128, 256),
    "warp tile": ("warp_tile<128, 128, 16, 32, 64>", 128, 256),
}
SGEMM_V100 = {
    **SGEMM,
    "2-D thread tile": ("thread_tile_2d<128, 128, 8, 8, 8>", 128, 256),
    "vectorized": ("a_transposed<128, 128, 8, 8, 8>", 128, 256),
    "prefetched": ("prefetched<128, 128, 8, 8, 8>", 128, 256),
}


def _sgemm(rates: dict[str, float], kernels: dict[str, tuple[str, int, Dims]]) -> tuple[Rung, ...]:
    return tuple(
        Rung(name, sgemm_launch(*kernels[name], sample_blocks=SGEMM_SAMPLE), FLOP / (rate * 1e12))
        for name, rate in rates.items()
    )


SGEMM_SAMPLE = 6


def reduction_launch(name: str, n: int = REDUCED, sample_blocks: int | None = None) -> Launch:
    """The sums of parts of n floats; a kernel for each rung."""
    kernel = name.replace(" ", "_")
    sums_many = name in ("many for each", "shuffled")
    grid = (
        min(2048, n // 512) if sums_many else n // (256 if name in ("divergent", "conflicting", "sequential") else 512)
    )

    def arguments(_: object) -> Sequence[Any]:
        return zeros(n), zeros(grid), *([np.int32(n)] if sums_many else [])

    return Launch("reduction.cu", kernel, grid, 256, arguments, sample_blocks=sample_blocks)


def tile_launch(kernel: str, n: int, sample_blocks: int | None = None) -> Launch:
    """A transposition of n x n floats."""

    def arguments(_: object) -> Sequence[Any]:
        return zeros((n, n)), zeros((n, n)), np.int32(n)

    return Launch("tiles.cu", kernel, (n // 32, n // 32), (32, 32), arguments, sample_blocks=sample_blocks)


def _tiles(n: int, milliseconds: dict[str, tuple[str, float]]) -> tuple[Rung, ...]:
    return tuple(
        Rung(name, tile_launch(kernel, n, sample_blocks=48), value / 1e3)
        for name, (kernel, value) in milliseconds.items()
    )


def ladders() -> list[PublicLadder]:
    """All of them."""
    reduction = tuple(
        Rung(name, reduction_launch(name, sample_blocks=48), value / 1e6) for name, value in REDUCTION.items()
    )
    transposition = {
        "with conflicts": ("through_tile<32>", 1.10),
        "padded": ("through_tile<33>", 0.92),
        "swizzled": ("swizzled", 0.92),
    }
    coalescing = {
        "reads coalesced": ("read_coalesced", 5.34),
        "writes coalesced": ("write_coalesced", 2.92),
        "both": ("through_tile<33>", 2.35),
    }
    mao = "L. Mao, leimao.github.io"
    return [
        PublicLadder(
            "SGEMM 4096",
            "RTX 3090",
            "leimao/CUDA-GEMM-Optimization, FP32, up to 25 % of scatter",
            _sgemm(ON_RTX3090, SGEMM),
        ),
        PublicLadder("SGEMM 4096", "V100", "wangzyon/NVIDIA_SGEMM_PRACTICE", _sgemm(ON_V100, SGEMM_V100)),
        PublicLadder("sum of 32 M floats", "V100", "Liu-xiandong/How_to_optimize_in_GPU, reduce", reduction),
        PublicLadder("transposition 8192²", "RTX 3090", f"{mao}, shared memory banks", _tiles(8192, transposition)),
        PublicLadder("transposition 12800²", "RTX 3090", f"{mao}, coalesced accesses", _tiles(12800, coalescing)),
    ]
