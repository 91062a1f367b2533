"""transpose: one side of a transposition always walks columns, unless a tile of shared memory turns it around.

`a` has n rows and m columns, `out` m rows and n columns, both row-major. Every rung gives a block the same
TILE x TILE square and the same threads, each of which moves TILE / block_rows elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab import cuda
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter, Values
from gpulab.kernels.records import Case, Data, Formula, Ladder, Rung, Step, blocks_for

TILE = 32
PITCH = TILE + 1  # Numba takes a shared array's size from a literal or a global, not from an expression


@cuda.jit
def naive(a, out):
    """Read along rows, write down columns."""
    column = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    row = cuda.blockIdx.y * TILE
    y = cuda.threadIdx.y
    while y < TILE:
        if row + y < a.shape[0] and column < a.shape[1]:
            out[column, row + y] = a[row + y, column]
        y += cuda.blockDim.y


@cuda.jit
def tiled(a, out):
    """Read and write along rows; turn in shared memory."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    x = cuda.threadIdx.x
    column = cuda.blockIdx.x * TILE + x
    row = cuda.blockIdx.y * TILE
    y = cuda.threadIdx.y
    while y < TILE:
        if row + y < a.shape[0] and column < a.shape[1]:
            tile[y, x] = a[row + y, column]
        y += cuda.blockDim.y
    cuda.syncthreads()
    column = cuda.blockIdx.y * TILE + x
    row = cuda.blockIdx.x * TILE
    y = cuda.threadIdx.y
    while y < TILE:
        if row + y < out.shape[0] and column < out.shape[1]:
            out[row + y, column] = tile[x, y]
        y += cuda.blockDim.y


@cuda.jit
def padded(a, out):
    """As `tiled`, with an unused column, so that a column of the tile lies in 32 banks."""
    tile = cuda.shared.array((TILE, PITCH), np.float32)
    x = cuda.threadIdx.x
    column = cuda.blockIdx.x * TILE + x
    row = cuda.blockIdx.y * TILE
    y = cuda.threadIdx.y
    while y < TILE:
        if row + y < a.shape[0] and column < a.shape[1]:
            tile[y, x] = a[row + y, column]
        y += cuda.blockDim.y
    cuda.syncthreads()
    column = cuda.blockIdx.y * TILE + x
    row = cuda.blockIdx.x * TILE
    y = cuda.threadIdx.y
    while y < TILE:
        if row + y < out.shape[0] and column < out.shape[1]:
            out[row + y, column] = tile[x, y]
        y += cuda.blockDim.y


def _one_tile_each(parameters: Values) -> Step:
    grid = blocks_for(parameters["m"], TILE), blocks_for(parameters["n"], TILE)
    return Step(grid, (TILE, parameters["block_rows"]))


def _make_data(parameters: Values, kind: str, rng: np.random.Generator) -> dict[str, Any]:
    shape = parameters["n"], parameters["m"]
    a = rng.random(shape, np.float32)
    if kind == "special":
        a.flat[::3] = rng.choice(np.array([0.0, -0.0, np.inf, np.nan, 1e-45, -3.4e38], np.float32), a.flat[::3].size)
    return {"a": a, "out": np.full(shape[::-1], -1.0, np.float32)}


def _reference(data: Data, parameters: Values) -> dict[str, Any]:
    return {"out": data["a"].T}


def _exact(data: Data, parameters: Values) -> dict[str, Any]:
    return {}


STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"

LADDER = Ladder(
    name="transpose",
    technique="shared memory turns a strided access into a coalesced one; padding removes its bank conflicts",
    problem="Transpose a float32 matrix of n rows and m columns.",
    module=__name__,
    parameters=(
        Parameter(name="n", default=2048, meaning="rows", range=(1, 1 << 14), scale="log2"),
        Parameter(name="m", default=2048, meaning="columns", range=(1, 1 << 14), scale="log2", follows="n"),
        Parameter(
            name="block_rows",
            default=8,
            meaning=f"rows of threads in a block of {TILE} columns",
            values=(1, 2, 4, 8, 16, 32),
            why=f"It must divide the {TILE} rows of a tile.",
        ),
    ),
    rungs=(
        Rung(
            name="naive",
            paragraph=(
                "A warp reads 32 neighbors of a row, 4 sectors, and writes them down a column: 32 sectors of which 4 "
                "bytes each are used. Swapping the roles only moves the trouble to the loads. Where rows are a power "
                "of two apart the caches suffer too."
            ),
            launch=_one_tile_each,
        ),
        Rung(
            name="tiled",
            paragraph=(
                "The block first reads a tile into shared memory, row by row, then writes it out row by row of the "
                "result, so that both sides of global memory are coalesced. The turn happens in shared memory, where "
                f"lanes now read a column: {TILE} floats apart, all in the same bank, so that each read takes {TILE} "
                "wavefronts. For small matrices that stay in the L2 cache the gain is small."
            ),
            launch=_one_tile_each,
            claim=Claim(STORE_SECTORS, "lower", 7.9, "naive"),
        ),
        Rung(
            name="padded",
            paragraph=(
                "One unused column in the tile: the elements of a column are now 33 floats apart and fall in 32 "
                "different banks, so that each read takes one wavefront. It costs 128 bytes of shared memory per "
                "block. Where DRAM already sets the pace the time hardly changes: conflicts only matter when shared "
                "memory is the limit."
            ),
            launch=_one_tile_each,
            claim=Claim(LOAD_WAVEFRONTS, "lower", 31.9, "tiled"),
        ),
    ),
    arguments={"numba": ("a", "out"), "cuda": ("a", "out", "n", "m")},
    make_data=_make_data,
    outputs=("out",),
    reference=_reference,
    tolerance=_exact,
    useful_flop=Formula("0", lambda parameters: 0),
    useful_bytes=Formula("8 n m", lambda parameters: 8 * parameters["n"] * parameters["m"]),
    cases=(
        Case("even", {"n": 128, "m": 64}),
        Case("one element", {"n": 1, "m": 1}),
        Case("one row", {"n": 1, "m": 100, "block_rows": 1}),
        Case("one column", {"n": 100, "m": 1, "block_rows": 32}),
        Case("ragged", {"n": 45, "m": 83, "block_rows": 4}),
        Case("special values", {"n": 33, "m": 31, "block_rows": 16}, "special"),
    ),
    kinds=("random", "special"),
)
