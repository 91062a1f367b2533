"""Sampled launches: a few blocks run, and the counters are extrapolated to the whole grid.

Blocks at the edges of a grid often do other work than those inside: they fill a halo, or find their guard false. So the
blocks are told apart by where they lie on each axis (first, inside, last), and the counts of each class are scaled by its
own share. What runs is three stretches of consecutive blocks, from the start, the middle and the end of the grid, and one
block of each class that these miss. Some more blocks are such as would share an SM: their accesses are traced for L1.

Different sectors don't scale like that, for blocks share data. How many more all three stretches touch than one of them
says how their number grows with the grid: not at all for a table that every block reads, in proportion for a stream. No
array has more sectors than it has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from gpulab.counters import PER_INSTRUCTION, Counters
from gpulab.emulator import execute
from gpulab.emulator.analysis.touched import Touched
from gpulab.emulator.memory import Memory
from gpulab.emulator.program import Program, RunOptions
from gpulab.launch import LaunchConfig
from gpulab.trace import ARRAY, LINE_BITS, SECTOR_BITS, Trace, Tracing, joined

STRETCHES = 3
# Above this exponent the number of different sectors grows in proportion: the rest is the grid's ragged end.
_PROPORTIONAL = 0.95
# Share of the sample that blocks of missed classes may take.
_MISSED_SHARE = 4
# And that blocks which would share an SM may take.
_NEAR_SHARE = 4


@dataclass(frozen=True)
class Sample:
    """Which blocks run, and for how many blocks of the grid each stands.

    Attributes
    ----------
    stretches : tuple of numpy.ndarray
        Linear block numbers, ascending, int64; those behind the third are of classes that the three miss.
    weights : dict of int to float
        For each class (`classes`): blocks of the grid for each block that runs.
    near : numpy.ndarray or None
        That of the stretches whose blocks would share an SM.
    """

    stretches: tuple[np.ndarray, ...]
    weights: dict[int, float]
    near: np.ndarray | None = None

    @property
    def blocks(self) -> int:
        """How many blocks run."""
        return sum(map(len, self.stretches))

    @property
    def middle(self) -> np.ndarray:
        """The stretch in the middle of the grid, which is the one that is traced."""
        return self.stretches[1 if len(self.stretches) >= STRETCHES else 0]


def classes(launch: LaunchConfig, numbers: np.ndarray) -> np.ndarray:
    """The class of each block: on each axis 0 for the first, 2 for the last, 1 between, as the digits of a number to base 3."""
    found, rest = np.zeros(len(numbers), np.int64), numbers
    for axis, size in enumerate(launch.grid):
        index, rest = rest % size, rest // size
        digit = np.where(index == 0, 0, np.where(index == size - 1, 2, 1)) if size > 1 else 1
        found += 3**axis * digit
    return found


def choose(launch: LaunchConfig, blocks: int, *, apart: int = 1, together: int = 0) -> Sample:
    """Choose `blocks` of the blocks of a grid that has more of them.

    Parameters
    ----------
    launch : LaunchConfig
    blocks : int
    apart, together : int
        How far the numbers of blocks lie apart that would share an SM, and how many of them are wanted.
    """
    totals = _class_totals(launch)
    wanted = min(together, blocks // _NEAR_SHARE, launch.blocks // apart)
    stretches, missed = _stretches(launch, blocks - wanted), list[int]()
    # Shorter stretches may miss more classes.
    while more := set(totals) - _classes_of(launch, stretches) - set(missed):
        room = blocks // _MISSED_SHARE - len(missed)
        if room <= 0:
            break
        missed += sorted(more, key=lambda each: -totals[each])[:room]
        stretches = _stretches(launch, blocks - wanted - len(missed))
    taken = np.concatenate(stretches)
    others = [number for number in (_one_of(launch, each) for each in missed) if number not in taken]
    stretches += (np.array(sorted(others), np.int64),) if others else ()
    near = _near(launch, apart, wanted, np.concatenate(stretches))
    if wanted and near is None:
        return choose(launch, blocks)
    stretches += (near,) if near is not None else ()
    ran = classes(launch, np.concatenate(stretches))
    counts = {int(each): int(count) for each, count in zip(*np.unique(ran, return_counts=True), strict=True)}
    # Blocks of a class of which none runs are counted as the most frequent class.
    most = max(counts, key=lambda each: totals[each])
    for each in set(totals) - set(counts):
        totals[most] += totals[each]
    weights = {each: totals[each] / counts[each] for each in counts}
    return Sample(stretches, weights, near)


def _near(launch: LaunchConfig, apart: int, count: int, taken: np.ndarray) -> np.ndarray | None:
    """So many blocks that lie so far apart, from the middle of the grid, none of them taken; None if there are none."""
    first = (launch.blocks - apart * count) // 2
    for shift in range(apart if count else 0):
        numbers = first + shift + apart * np.arange(count)
        if not np.isin(numbers, taken).any():
            return numbers
    return None


def _class_totals(launch: LaunchConfig) -> dict[int, int]:
    found = {0: 1}
    for axis, size in enumerate(launch.grid):
        digits = {1: 1} if size == 1 else {0: 1, 1: size - 2, 2: 1}
        found = {
            key + 3**axis * digit: total * count
            for key, total in found.items()
            for digit, count in digits.items()
            if count
        }
    return found


def _classes_of(launch: LaunchConfig, stretches: tuple[np.ndarray, ...]) -> set[int]:
    return set(classes(launch, np.concatenate(stretches)).tolist())


def _stretches(launch: LaunchConfig, blocks: int) -> tuple[np.ndarray, ...]:
    """Three stretches of about equal length that don't overlap; one in the middle if there are fewer than three blocks."""
    nx, ny, nz = launch.grid
    outer = blocks // STRETCHES
    inner = blocks - 2 * outer
    middle = (nz // 2 * ny + ny // 2) * nx + nx // 2 - inner // 2
    middle = min(max(middle, outer), launch.blocks - outer - inner)
    starts = ((0, outer), (middle, inner), (launch.blocks - outer, outer))
    return tuple(np.arange(start, start + length) for start, length in starts if length)


def _one_of(launch: LaunchConfig, which: int) -> int:
    """A block of a class, in the middle of it."""
    number, stride = 0, 1
    for axis, size in enumerate(launch.grid):
        digit = which // 3**axis % 3
        number += stride * (0 if digit == 0 else size - 1 if digit == 2 else size // 2 if size > 1 else 0)
        stride *= size
    return number


# ---- running


def execute_sample(
    program: Program,
    launch: LaunchConfig,
    parameters: bytes,
    memory: Memory,
    symbols: dict[str, int],
    options: RunOptions,
    sample: Sample,
) -> tuple[Counters, tuple[str, ...]]:
    """Run the blocks of a sample.

    Parameters
    ----------
    program, launch, parameters, memory, symbols, options
        As for `gpulab.emulator.execute`; `options.blocks` is not used. Only the stretch in the middle is traced.
    sample : Sample
        From `choose`.

    Returns
    -------
    Counters
        Of the whole grid, extrapolated, with `sampled_blocks` set.
    tuple of str
        Names of the arrays that were stored to: they hold the results of the sampled blocks alone.
    """
    allocations = dict(memory.allocations)  # the same for both, whatever is released meanwhile
    stretch_touched, touched, distinct = Touched(allocations), Touched(allocations), []
    traces: dict[str, list[Trace]] = {"far": [], "near": []}
    ran = {kind: Counters.zeros(len(program.forms)) for kind in sample.weights}
    end = time.monotonic() + options.time_limit_s
    for stretch in sample.stretches:
        stretch_touched.clear()
        kinds = classes(launch, stretch)
        for kind in np.unique(kinds).tolist():
            left = max(end - time.monotonic(), 1e-3)
            part = replace(options, blocks=stretch[kinds == kind], touched=stretch_touched, time_limit_s=left)
            part = replace(part, tracing=_traced(sample, stretch, options.tracing))
            counted = execute(program, launch, parameters, memory, symbols, part)
            _add(ran[kind], counted)
            if counted.trace is not None:
                traces["near" if stretch is sample.near else "far"].append(counted.trace)
        touched.add(stretch_touched)
        distinct.append((stretch_touched.counts(), touched.counts()))
    total = Counters.zeros(len(program.forms))
    for kind, weight in sample.weights.items():
        _add(total, ran[kind], weight)
    total.blocks, total.sampled_blocks = launch.blocks, sample.blocks
    total.warps, total.threads = launch.blocks * launch.warps_per_block, launch.blocks * launch.threads_per_block
    stands_for = [
        np.mean([sample.weights[kind] for kind in classes(launch, each).tolist()]) for each in sample.stretches
    ]
    grown = np.minimum(_grown(distinct, stands_for), touched.sizes()[:, None])
    totals = grown.sum(axis=0).tolist()
    total.distinct_sectors_read, total.distinct_sectors_written, total.footprint_sectors = totals
    if traces["far"]:
        of_middle = next(
            own for stretch, (own, _) in zip(sample.stretches, distinct, strict=True) if stretch is sample.middle
        )
        far = joined(traces["far"])
        near = joined(traces["near"] or traces["far"]).near
        total.trace = replace(far, near=near, near_sms=1, arrays=_arrays(touched.first_sectors(), of_middle, grown))
    return total, touched.written_names()


def _traced(sample: Sample, stretch: np.ndarray, whole: Tracing | None) -> Tracing | None:
    """What to trace of a stretch, of what a launch would trace that is not sampled."""
    if whole is None or (stretch is not sample.middle and stretch is not sample.near):
        return None
    near = stretch if stretch is sample.near or sample.near is None else ()
    return Tracing(tuple(map(int, near)), whole.lines)


def _arrays(first_sectors: np.ndarray, traced: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """What the trace tells of each array, from sectors as `Touched` counts them."""
    found = np.zeros(len(first_sectors), ARRAY)
    found["line"] = first_sectors >> LINE_BITS - SECTOR_BITS
    found["loaded"], found["stored"] = traced[:, 0], traced[:, 1]
    found["grid_loaded"], found["grid_stored"] = grid[:, 0], grid[:, 1]
    return np.sort(found, order="line")


def _add(total: Counters, part: Counters, weight: float = 1.0) -> None:
    for name in PER_INSTRUCTION:
        getattr(total, name)[:] += np.rint(getattr(part, name) * weight).astype(np.int64)


def _grown(distinct: list[tuple[np.ndarray, np.ndarray]], stands_for: list[float]) -> np.ndarray:
    """Different sectors of the whole grid, for each allocation in each way, int64.

    Parameters
    ----------
    distinct : list of (numpy.ndarray, numpy.ndarray)
        For each stretch: sectors that it touched, and that it and those before it touched.
    stands_for : list of float
        For each stretch: blocks of the grid for each of its blocks.
    """
    seen = distinct[-1][1]
    proportional = np.sum([own * each for (own, _), each in zip(distinct, stands_for, strict=True)], axis=0)
    exponent: np.ndarray | float = 1.0
    if len(distinct) >= STRETCHES:
        one, three = np.mean([own for own, _ in distinct[:STRETCHES]], axis=0), distinct[STRETCHES - 1][1]
        found = np.log(np.maximum(three, 1) / np.maximum(one, 1)) / np.log(STRETCHES)
        exponent = np.where(found > _PROPORTIONAL, 1.0, np.maximum(found, 0.0))
    grown = seen * np.maximum(proportional / np.maximum(seen, 1), 1.0) ** exponent
    return np.rint(grown).astype(np.int64)
