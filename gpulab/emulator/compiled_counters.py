"""What the contexts of a launch counted, summed into `Counters`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpulab.counters import COPIED, Counters
from gpulab.emulator.compiled_trace import trace_of
from gpulab.emulator.native import count as native_count
from gpulab.emulator.native import touch

if TYPE_CHECKING:
    from gpulab.emulator.compiled import Run


def counters_of(run: Run) -> Counters:
    """The counters of a launch that has ended."""
    program = run.program
    found = Counters.zeros(len(program.forms))
    found.blocks = sum(each.word("blocks_run") for each in run.contexts)
    found.warps = found.blocks * run.launch.warps_per_block
    found.threads = found.blocks * run.launch.threads_per_block
    if run.blocks is not None:
        found.sampled_blocks = found.blocks
    if run.touched is None:
        return found
    entries, lanes = _summed(run, "block_counters", 2).T
    on, divergent = _summed(run, "branch_counters", 2).T
    tables = program.tables
    found.warp_instructions[:] = entries[tables.block]
    found.thread_instructions[:] = lanes[tables.block]
    found.thread_instructions_pred_on[:] = np.where(tables.guarded, on, found.thread_instructions)
    found.divergent_branches[:] = divergent
    _take_requests(run, found)
    tracers = [each.tracer for each in run.threads if each.tracer is not None]
    if run.options.tracing is not None:
        found.trace = trace_of(tracers, run.options.tracing, run.blocks)
        found.l1_miss_sectors[:] = 0
    if program.synthetic.any():
        found.leave_out(program.synthetic)
    distinct = run.touched.counts().sum(axis=0).tolist()
    found.distinct_sectors_read, found.distinct_sectors_written, found.footprint_sectors = distinct
    return found


def _take_requests(run: Run, found: Counters) -> None:
    """What memory requests cost; the stores of asynchronous copies have rows of their own, behind the others."""
    copies, count = run.program.copies, len(run.program.forms)
    words = native_count.expand(_summed(run, "memory_counters", touch.WORD_BYTES // 8), run.code.usual_costs)
    for name, column in zip(touch.WORDS, words.T, strict=True):
        getattr(found, name)[:] = column[:count]
        if name in COPIED:
            getattr(found, COPIED[name])[copies] = column[count:]


def _summed(run: Run, name: str, columns: int) -> np.ndarray:
    return sum(each.buffers[name].view(np.int64) for each in run.contexts).reshape(-1, columns)
