"""reduction: a block adds its elements in a tree. Which threads work at each step decides how many warps stay busy.

Each block sums its own part of `x` and stores one float in `partial`; the few partial sums are added at the end (here
by NumPy, on a GPU by a second launch). The result is the sum of all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpulab import cuda
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter, Values
from gpulab.kernels.records import Case, Data, Formula, Ladder, Rung, Step, blocks_for

MAX_BLOCK = 1024
WARP = 32
ALL_LANES = 0xFFFFFFFF


@cuda.jit
def interleaved(x, partial):
    """Every (2 step)-th thread adds its neighbor `step` further on."""
    shared = cuda.shared.array(MAX_BLOCK, np.float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[thread] = x[i] if i < x.size else np.float32(0)
    cuda.syncthreads()
    step = 1
    while step < cuda.blockDim.x:
        if thread % (2 * step) == 0:
            shared[thread] += shared[thread + step]
        cuda.syncthreads()
        step *= 2
    if thread == 0:
        partial[cuda.blockIdx.x] = shared[0]


@cuda.jit
def sequential(x, partial):
    """The first `step` threads add the next `step`."""
    shared = cuda.shared.array(MAX_BLOCK, np.float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[thread] = x[i] if i < x.size else np.float32(0)
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if thread < step:
            shared[thread] += shared[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        partial[cuda.blockIdx.x] = shared[0]


@cuda.jit(device=True)
def warp_sum(value):
    """Sum over the lanes of a warp, in lane 0."""
    step = WARP // 2
    while step > 0:
        value += cuda.shfl_down_sync(ALL_LANES, value, step)
        step //= 2
    return value


@cuda.jit
def shuffle(x, partial):
    """Each warp sums by shuffles, then the first warp sums the warps' sums."""
    shared = cuda.shared.array(WARP, np.float32)
    lane = cuda.threadIdx.x % WARP
    warp = cuda.threadIdx.x // WARP
    i = cuda.grid(1)
    value = warp_sum(x[i] if i < x.size else np.float32(0))
    if lane == 0:
        shared[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = warp_sum(shared[lane] if lane < cuda.blockDim.x // WARP else np.float32(0))
        if lane == 0:
            partial[cuda.blockIdx.x] = value


def _one_element_each(parameters: Values) -> Step:
    return Step(blocks_for(parameters["n"], parameters["block"]), parameters["block"])


def _make_data(parameters: Values, kind: str, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.random(parameters["n"], np.float32)
    if kind == "cancelling":
        # Large numbers of both signs whose sum is small: a lost or doubled element stands out.
        x = ((x - np.float32(0.5)) * np.float32(2.0) ** rng.integers(-20, 20, len(x))).astype(np.float32)
    blocks = blocks_for(parameters["n"], parameters["block"])
    return {"x": x, "partial": np.full(blocks, np.nan, np.float32)}


def _reference(data: Data, parameters: Values) -> dict[str, Any]:
    return {"sum": math.fsum(data["x"].tolist()) if len(data["x"]) < 1 << 16 else data["x"].sum(dtype=np.float64)}


def _result(data: Data, parameters: Values) -> dict[str, Any]:
    return {"sum": data["partial"].sum(dtype=np.float64)}


def _tolerance(data: Data, parameters: Values) -> dict[str, Any]:
    # A tree of depth d makes a relative error of at most d u / (1 - d u) on each |x| (Higham, Accuracy and Stability of
    # Numerical Algorithms, section 4.2), u = 2**-24 for float32.
    rounding = math.log2(parameters["block"]) * 2.0**-24
    return {"sum": rounding / (1 - rounding) * np.abs(data["x"]).sum(dtype=np.float64)}


SHARED_LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"

LADDER = Ladder(
    name="reduction",
    technique="a tree sum: let whole warps retire, then let lanes talk without shared memory",
    problem="Sum n float32.",
    module=__name__,
    parameters=(
        Parameter(name="n", default=1 << 22, meaning="elements", range=(1, 1 << 24), scale="log2"),
        Parameter(
            name="block",
            default=256,
            meaning="threads per block",
            values=(32, 64, 128, 256, 512, 1024),
            why="The tree halves the number of threads at each step.",
        ),
    ),
    rungs=(
        Rung(
            name="interleaved",
            paragraph=(
                "At step s every thread whose number is a multiple of 2 s adds its neighbor s further on. The working "
                "threads are spread over all warps, so that up to s = 16 every warp issues every instruction for "
                "fewer and fewer lanes: 16, 8, 4, 2, 1 of 32. The modulo is a slow division on top."
            ),
            launch=_one_element_each,
        ),
        Rung(
            name="sequential",
            paragraph=(
                "The first half of the threads adds the second half, then the first quarter the second, and so on. "
                "The working threads are neighbors, so that whole warps skip the addition; only the last five steps "
                "leave lanes idle, in one warp. Neighbors also read neighboring banks. Every warp still waits at "
                "every barrier."
            ),
            launch=_one_element_each,
            claim=Claim(SHARED_LOADS, "lower", 3.5, "interleaved"),
        ),
        Rung(
            name="shuffle",
            paragraph=(
                "Lanes of a warp exchange registers by shuffles: five steps without shared memory and without a "
                "barrier. Shared memory carries one float per warp, and there is one barrier in place of nine. Once "
                "DRAM sets the pace, more of this does not help: then let each thread first add several elements."
            ),
            launch=_one_element_each,
            claim=Claim(f"{SHARED_LOADS} + {SHARED_STORES}", "lower", 4.5, "sequential"),
        ),
    ),
    arguments={"numba": ("x", "partial"), "cuda": ("x", "partial", "n")},
    make_data=_make_data,
    outputs=("partial",),
    reference=_reference,
    result=_result,
    tolerance=_tolerance,
    useful_flop=Formula("n - 1", lambda parameters: parameters["n"] - 1),
    useful_bytes=Formula("4 n + 4", lambda parameters: 4 * parameters["n"] + 4),
    cases=(
        Case("even", {"n": 1 << 13}),
        Case("one element", {"n": 1, "block": 32}),
        Case("less than a block", {"n": 63, "block": 128}),
        Case("ragged", {"n": 5_003, "block": 64}),
        Case("largest block", {"n": 3_001, "block": 1024}),
        Case("cancelling", {"n": 1_999, "block": 512}, "cancelling"),
    ),
    kinds=("random", "cancelling"),
)
