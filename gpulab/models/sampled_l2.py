"""L2 of a launch of which only a stretch of blocks was traced: what it reads and writes in waves of many more blocks.

Inside the stretch the trace says what L2 keeps, one scaled down with the number of blocks. What a wave of blocks uses is
extrapolated for each array from how much more the whole stretch uses than half of it, up to what the whole grid uses:
each block a row of its own, or all of them the same table. What L2 does not keep until the next wave, each wave moves again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpulab.models.access import SECTOR_BYTES
from gpulab.models.l2 import GpuAccesses
from gpulab.models.reuse import SECTORS_OF
from gpulab.trace import LOAD, STORE, Trace

Often = tuple[float, ...]


def often(trace: Trace, done: GpuAccesses, grid: int, resident: int, l2_sizes: Sequence[float]) -> tuple[Often, Often]:
    """How often each different sector is read from and written to DRAM, for each size of L2.

    Parameters
    ----------
    trace : Trace
        With `arrays`.
    done : GpuAccesses
        Of the blocks traced.
    grid, resident : int
        Blocks of the grid, and those that the GPU holds at once.
    l2_sizes : sequence of float
        Bytes.
    """
    arrays, blocks = trace.arrays, trace.far.blocks
    assert arrays is not None and blocks is not None
    wave, part = min(grid, resident), min(1.0, len(blocks) / resident)
    loads, stores = trace.far.events["kind"] != STORE, trace.far.events["kind"] != LOAD
    loaded = in_a_wave(trace, loads, arrays["loaded"], arrays["grid_loaded"], wave)
    stored = in_a_wave(trace, stores, arrays["stored"], arrays["grid_stored"], wave)
    wanted = max(1.0, (loaded.sum() + stored.sum()) * SECTOR_BYTES)
    reads, writes = [], []
    for size in l2_sizes:
        lost = 1 - min(1.0, size / wanted)
        reads.append(done.reads(size * part) * _again(loaded, arrays["grid_loaded"], grid / wave, lost))
        writes.append(done.writes(size * part) * _again(stored, arrays["grid_stored"], grid / wave, lost))
    return tuple(reads), tuple(writes)


def in_a_wave(trace: Trace, among: np.ndarray, traced: np.ndarray, grid: np.ndarray, wave: int) -> np.ndarray:
    """Different sectors of each array that a wave of blocks uses, float64.

    Parameters
    ----------
    trace : Trace
    among : numpy.ndarray
        The events of the far sample that count, bool.
    traced, grid : numpy.ndarray
        Different sectors of each array that the blocks traced use, and that all of them use.
    wave : int
        Blocks.
    """
    arrays, blocks = trace.arrays, trace.far.blocks
    assert arrays is not None and blocks is not None
    events = trace.far.events[among]
    late = events["block"] >= blocks[len(blocks) // 2]
    whole = _different(events, arrays)
    halves = (_different(events[~late], arrays) + _different(events[late], arrays)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.log2(whole / halves)
    # Of an array that is not in the sample, or of one block, take it that each block has sectors of its own.
    growth = np.where((whole > 0) & (len(blocks) > 1), np.clip(growth, 0.0, 1.0), 1.0)
    return np.minimum(grid, traced * (wave / len(blocks)) ** growth)


def _different(events: np.ndarray, arrays: np.ndarray) -> np.ndarray:
    """Different sectors of each array that some events have, float64."""
    if not len(events):
        return np.zeros(len(arrays))
    events = events[np.argsort(events["line"], kind="stable")]
    begins = np.flatnonzero(np.concatenate(([True], events["line"][1:] != events["line"][:-1])))
    masks = np.bitwise_or.reduceat(events["sectors"], begins)
    of = np.searchsorted(arrays["line"], events["line"][begins], "right") - 1
    return np.bincount(of, SECTORS_OF[masks], len(arrays))


def _again(wave: np.ndarray, grid: np.ndarray, waves: float, lost: float) -> float:
    """How often the waves move each different sector together, if L2 has lost this share of them at the next wave."""
    again = np.maximum(waves * wave - grid, 0.0)
    return float((grid + lost * again).sum() / max(1, grid.sum()))
