"""matmul: c = a b in float32, one element of c per thread. First the lanes' direction, then a tile that is used again.

`a` has n rows and k columns, `b` k rows and m columns, all row-major. The block is tile x tile threads in every rung.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpulab import cuda
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter, Values
from gpulab.kernels.records import Case, Data, Formula, Ladder, Rung, Step, blocks_for


@cuda.jit
def naive(a, b, c):
    """threadIdx.x counts rows of c."""
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@cuda.jit
def coalesced(a, b, c):
    """threadIdx.x counts columns of c."""
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@functools.cache
def tiled(tile: int) -> Any:
    """The tiled kernel for this tile size: shared arrays need sizes known when the kernel is compiled."""

    @cuda.jit
    def tiled(a, b, c):
        a_tile = cuda.shared.array((tile, tile), np.float32)
        b_tile = cuda.shared.array((tile, tile), np.float32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = np.float32(0)
        for start in range(0, a.shape[1], tile):
            # Zeros past the edges: they add nothing, and no thread may leave before the barriers.
            inside = row < a.shape[0] and start + x < a.shape[1]
            a_tile[y, x] = a[row, start + x] if inside else np.float32(0)
            inside = start + y < b.shape[0] and column < b.shape[1]
            b_tile[y, x] = b[start + y, column] if inside else np.float32(0)
            cuda.syncthreads()
            for k in range(tile):
                total += a_tile[y, k] * b_tile[k, x]
            cuda.syncthreads()
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    return tiled


def _threads_along_rows(parameters: Values) -> Step:
    tile = parameters["tile"]
    return Step((blocks_for(parameters["n"], tile), blocks_for(parameters["m"], tile)), (tile, tile))


def _threads_along_columns(parameters: Values) -> Step:
    tile = parameters["tile"]
    return Step((blocks_for(parameters["m"], tile), blocks_for(parameters["n"], tile)), (tile, tile))


def _make_data(parameters: Values, kind: str, rng: np.random.Generator) -> dict[str, Any]:
    n, m, k = parameters["n"], parameters["m"], parameters["k"]
    a, b = rng.random((n, k), np.float32), rng.random((k, m), np.float32)
    if kind == "cancelling":
        a = ((a - np.float32(0.5)) * np.float32(2.0) ** rng.integers(-10, 10, a.shape)).astype(np.float32)
        b = ((b - np.float32(0.5)) * np.float32(2.0) ** rng.integers(-10, 10, b.shape)).astype(np.float32)
    return {"a": a, "b": b, "c": np.full((n, m), np.nan, np.float32)}


def _reference(data: Data, parameters: Values) -> dict[str, Any]:
    return {"c": data["a"].astype(np.float64) @ data["b"].astype(np.float64)}


def _tolerance(data: Data, parameters: Values) -> dict[str, Any]:
    # |error| <= k u / (1 - k u) |a| |b| for a sum of k products in any order, fused or not (Higham, Accuracy and
    # Stability of Numerical Algorithms, section 3.1), u = 2**-24 for float32.
    rounding = parameters["k"] * 2.0**-24
    sizes = np.abs(data["a"]).astype(np.float64) @ np.abs(data["b"]).astype(np.float64)
    return {"c": rounding / (1 - rounding) * sizes}


LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def _size(name: str, meaning: str, follows: str | None = None) -> Parameter:
    return Parameter(name=name, default=640, meaning=meaning, range=(1, 4096), scale="log2", follows=follows)


LADDER = Ladder(
    name="matmul",
    technique="coalesced operands, then a shared tile so that each loaded element is used tile times",
    problem="c = a b for float32 matrices, a of n rows and k columns, b of k rows and m columns.",
    module=__name__,
    parameters=(
        _size("n", "rows of a and c"),
        _size("m", "columns of b and c", follows="n"),
        _size("k", "columns of a, rows of b", follows="n"),
        Parameter(
            name="tile",
            default=16,
            meaning="threads along each side of a block, and side of the shared tile",
            values=(8, 16, 32),
            why="A block has tile x tile threads: whole warps, and at most 1,024.",
        ),
    ),
    rungs=(
        Rung(
            name="naive",
            paragraph=(
                "threadIdx.x counts rows, as `row, column = grid(2)` suggests. The lanes of a warp then read a column "
                "of a, each from another sector, at every step, while all read the same element of b. The stores of c "
                "are scattered too."
            ),
            launch=_threads_along_rows,
        ),
        Rung(
            name="coalesced",
            paragraph=(
                "threadIdx.x counts columns. Now the lanes of a row share one element of a (a broadcast) and read "
                "neighbors of b: with blocks of 16 x 16, 4 sectors per multiplication where there were 17. Only two "
                "names were swapped. Each multiplication still needs two loads: the arithmetic waits for L1, and in Numba "
                "for its 64-bit index arithmetic first."
            ),
            launch=_threads_along_columns,
            claim=Claim(LOAD_SECTORS, "lower", 4.2, "naive"),
        ),
        Rung(
            name="tiled",
            paragraph=(
                "The block loads a tile of a and of b into shared memory once, and each of its threads uses every "
                "element from there: global loads shrink by the tile's side, and what reaches L2 no longer depends on "
                "luck in L1. It still reads shared memory twice per multiplication, so that the gain over a good L1 "
                "cache is moderate; keeping several results per thread in registers is the next step."
            ),
            launch=_threads_along_columns,
            constants=("tile",),
            claim=Claim(LOAD_SECTORS, "lower", 7.9, "coalesced"),
        ),
    ),
    arguments={"numba": ("a", "b", "c"), "cuda": ("a", "b", "c", "n", "m", "k")},
    make_data=_make_data,
    outputs=("c",),
    reference=_reference,
    tolerance=_tolerance,
    useful_flop=Formula("2 n m k", lambda parameters: 2 * parameters["n"] * parameters["m"] * parameters["k"]),
    useful_bytes=Formula(
        "4 (n k + k m + n m)",
        lambda parameters: (
            4
            * (
                parameters["n"] * parameters["k"]
                + parameters["k"] * parameters["m"]
                + parameters["n"] * parameters["m"]
            )
        ),
    ),
    cases=(
        Case("even", {"n": 64, "m": 64, "k": 64}),
        Case("one element", {"n": 1, "m": 1, "k": 1}),
        Case("one inner element", {"n": 9, "m": 17, "k": 1, "tile": 8}),
        Case("ragged", {"n": 37, "m": 70, "k": 45}),
        Case("ragged, large tile", {"n": 33, "m": 31, "k": 65, "tile": 32}),
        Case("cancelling", {"n": 11, "m": 19, "k": 21, "tile": 8}, "cancelling"),
    ),
    kinds=("random", "cancelling"),
)
