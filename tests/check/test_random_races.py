"""Random accesses in phases, with and without barriers between them: the check against all pairs, in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gpulab

THREADS, WARP, PHASES = 64, 32, 4
NOTHING, STORE, LOAD, ADD = range(4)
NO_SYNC, WARP_SYNC, BLOCK_SYNC = range(3)

SOURCE = r"""
__device__ void access(int* cell, int what, int value, int& sum) {
    if (what == 1) *cell = value;
    if (what == 2) sum += *cell;
    if (what == 3) atomicAdd(cell, 1);
}
__device__ void sync(int how) {
    if (how == 1) __syncwarp();
    if (how == 2) __syncthreads();
}
extern "C" __global__ void in_shared(const int* what, const int* where, const int* how, int phases, int* out) {
    __shared__ int cells[8];
    int t = threadIdx.x, sum = 0;
    if (t < 8) cells[t] = 0;
    __syncthreads();
    for (int p = 0; p < phases; ++p) {
        access(&cells[where[p * 64 + t]], what[p * 64 + t], 1000 * p + t + 1, sum);
        sync(how[p]);
    }
    out[t] = sum;
}
extern "C" __global__ void in_global(const int* what, const int* where, const int* how, int phases, int* out, int* cells) {
    int t = threadIdx.x, at = 64 * blockIdx.x + t, sum = 0;
    for (int p = 0; p < phases; ++p) {
        access(&cells[where[p * 128 + at]], what[p * 128 + at], 1000 * p + at + 1, sum);
        sync(how[p]);
    }
    out[at] = sum;
}
"""
IN_SHARED, IN_GLOBAL = (gpulab.RawKernel(SOURCE, name) for name in ("in_shared", "in_global"))

cell = st.tuples(
    st.integers(0, PHASES - 1), st.integers(0, 2 * THREADS - 1), st.sampled_from((STORE, LOAD, ADD)), st.integers(0, 3)
)
accesses = st.lists(cell, min_size=2, max_size=10)
syncs = st.lists(st.sampled_from((NO_SYNC, WARP_SYNC, BLOCK_SYNC)), min_size=PHASES, max_size=PHASES)


def tables(chosen: list[tuple[int, int, int, int]], threads: int) -> tuple[np.ndarray, np.ndarray]:
    """What each thread does in each phase, and where: shape (phases, threads)."""
    what, where = np.zeros((2, PHASES, threads), np.int32)
    for phase, thread, kind, place in chosen:
        what[phase, thread % threads], where[phase, thread % threads] = kind, place
    return what, where


def has_race(what: np.ndarray, where: np.ndarray, how: list[int]) -> bool:
    """Whether any two accesses of one place conflict and nothing orders them."""
    found = [(p, t, what[p, t], where[p, t]) for p, t in zip(*np.nonzero(what), strict=True)]
    return any(conflict(one, two) and not ordered(one, two, how) for one, two in itertools.combinations(found, 2))


def conflict(one: tuple, two: tuple) -> bool:
    """Whether two accesses go to one place, one of them stores, and not both are atomic."""
    kinds = {one[2], two[2]}
    return one[3] == two[3] and one[1] != two[1] and kinds != {LOAD} and kinds != {ADD}


def ordered(one: tuple, two: tuple, how: list[int]) -> bool:
    """Whether a synchronization lies between two accesses that both threads take part in."""
    between = how[min(one[0], two[0]) : max(one[0], two[0])]
    same_block = one[1] // THREADS == two[1] // THREADS
    same_warp = one[1] // WARP == two[1] // WARP
    return same_block and (BLOCK_SYNC in between or (same_warp and WARP_SYNC in between))


@settings(max_examples=60, deadline=None)
@given(accesses, syncs)
def test_shared_memory(chosen: list[tuple[int, int, int, int]], how: list[int]) -> None:
    what, where = tables(chosen, THREADS)
    out = np.zeros(THREADS, np.int32)
    report = gpulab.check(IN_SHARED[1, THREADS], what, where, np.array(how, np.int32), np.int32(PHASES), out)
    assert bool(report.faults) == has_race(what, where, how), report
    assert {fault.kind for fault in report.faults} <= {"race", "warp-sync"}


@example([(0, 0, STORE, 0), (0, 32, ADD, 0), (1, 0, ADD, 0)], [NO_SYNC] * PHASES)  # its own atomic hides the store
@example([(0, 0, LOAD, 0), (0, 32, ADD, 0), (1, 0, ADD, 0)], [NO_SYNC] * PHASES)
@example([(0, 0, STORE, 0), (0, 64, ADD, 0), (1, 1, ADD, 0)], [BLOCK_SYNC] * PHASES)
@settings(max_examples=60, deadline=None)
@given(accesses, syncs)
def test_global_memory_of_two_blocks(chosen: list[tuple[int, int, int, int]], how: list[int]) -> None:
    what, where = tables(chosen, 2 * THREADS)
    out, cells = np.zeros(2 * THREADS, np.int32), np.zeros(8, np.int32)
    report = gpulab.check(IN_GLOBAL[2, THREADS], what, where, np.array(how, np.int32), np.int32(PHASES), out, cells)
    assert bool(report.faults) == has_race(what, where, how), report
