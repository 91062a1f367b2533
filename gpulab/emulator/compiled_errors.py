"""How a launch of the compiled engine failed, read from what its threads left in their contexts and frames."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gpulab.emulator import layout
from gpulab.emulator.deadlock import Standing, absent, deadlock, who_waits
from gpulab.emulator.faults import make_fault, memory_fault, time_limit_error
from gpulab.emulator.layout import DISPATCH, FAULT_KINDS
from gpulab.errors import KernelFault

if TYPE_CHECKING:
    from gpulab.emulator.compiled import OsThread, Run


def error_of(run: Run, timed_out: bool) -> BaseException | None:
    """The error of a launch that has ended, None if it ended well."""
    for error in (*(thread.error for thread in run.threads), run.calls.error):
        if error is not None:
            return error
    faulted = [context for context in run.contexts if context.result == layout.FAULT]
    if faulted:
        return fault_of(run, min(faulted, key=lambda context: context.word("turn")))
    stopped = [context for context in run.contexts if context.result == layout.STOP]
    if timed_out and stopped:
        first = max(stopped, key=lambda context: context.word("fault_instruction") >= 0)
        where = first.word("fault_instruction"), first.word("fault_block"), first.word("fault_warp")
        others = who_waits(run.program, run.launch, list(_waiting_beside(run, *where[1:])))
        return time_limit_error(run.program, run.launch, run.options.time_limit_s, *where, others)
    return None


def _waiting_beside(run: Run, block: int, warp: int) -> Iterator[Standing]:
    """The warps that had returned to wait when the launch was stopped, but for one."""
    for context in run.contexts:
        if context.word("in_block"):
            for standing in _standings(run, context):
                if (standing.block, standing.warp) != (block, warp):
                    yield standing


def fault_of(run: Run, context: OsThread) -> KernelFault:
    """The fault that a context recorded."""
    kind = FAULT_KINDS[context.word("fault_kind")]
    instruction, block = context.word("fault_instruction"), context.word("fault_block")
    linear = context.word("fault_warp") * layout.WARP + context.word("fault_lane")
    if kind in ("out-of-bounds", "misaligned"):
        address = context.word("fault_address") & (1 << 64) - 1
        return memory_fault(run.program, run.launch, run.memory, kind, instruction, block, linear, address)
    if kind == "deadlock":
        return _deadlock(run, context)
    if kind.startswith("warp-sync"):
        return _missed(run, context, kind)
    message, failure = "", run.calls.failures.get(block)
    if kind == "call" and failure is not None:
        kind, message = failure.kind, failure.message
        linear = context.word("fault_warp") * layout.WARP + failure.lane
    return make_fault(run.program, run.launch, kind, instruction, block, linear, message)


def _missed(run: Run, context: OsThread, kind: str) -> KernelFault:
    """That of a lane which waits for others of its warp in vain, or has a mask that cannot be."""
    block, warp, lane = (context.word(f"fault_{name}") for name in ("block", "warp", "lane"))
    frame = _frames(run, context)[warp]
    masks = {name: int(frame[layout.FRAME[name]]) for name in ("ready", "blocked", "parked", "arrived")}
    lanes = {}
    if masks["blocked"] >> lane & 1:
        live = functools.reduce(operator.or_, masks.values())
        wanted = int(frame.view(np.uint32)[layout.FRAME_WANTED // 4 + lane]) & live
        lanes = {
            other: _lane_standing(run, context, warp, other) for other in range(layout.WARP) if wanted >> other & 1
        }
    return absent(
        run.program, run.launch, kind, block, warp * layout.WARP + lane, context.word("fault_instruction"), lanes
    )


def _lane_standing(run: Run, context: OsThread, warp: int, lane: int) -> Standing:
    frames = _frames(run, context)
    frame, block = frames[warp], context.word("block")
    rank = int(frame.view(np.int32)[layout.FRAME_AT // 4 + lane])
    start = run.program.graph.blocks[rank].start
    held = {name: int(frame[layout.FRAME[name]]) >> lane & 1 for name in ("blocked", "parked", "arrived")}
    if held["arrived"]:
        return Standing(block, warp, start, _barrier(context, frames, int(frame[layout.FRAME["barrier"]])))
    waits = bool(held["blocked"] or held["parked"])
    return Standing(block, warp, run.program.spins.get(rank, start), None, waits)


def _frames(run: Run, context: OsThread) -> np.ndarray:
    """Words of the frames of a context's warps, shape (warps, words), int64."""
    return context.buffers["frames"].view(np.int64).reshape(run.launch.warps_per_block, -1)


# ---- deadlocks


def _deadlock(run: Run, context: OsThread) -> KernelFault:
    """That of one block whose warps all wait at barriers, or of all blocks in flight."""
    stuck = [each for each in run.contexts if each.result == layout.YIELD] if not context.alone else []
    standings = [standing for each in [context, *stuck] for standing in _standings(run, each)]
    begun = int(run.shared_words[1])
    return deadlock(run.program, run.launch, standings, max(run.block_count - begun, 0))


def _standings(run: Run, context: OsThread) -> Iterator[Standing]:
    """Where the unfinished warps of a context's block stand."""
    block, blocks = context.word("block"), run.program.graph.blocks
    frames = _frames(run, context)
    for warp, frame in enumerate(frames):
        begun = frame[layout.FRAME["resume"]].astype(np.int32) != 0
        if frame[layout.FRAME["status"]] == layout.FINISHED or not begun:
            continue
        for rank, at_barrier in _places(run, frame):
            barrier = _barrier(context, frames, int(frame[layout.FRAME["barrier"]])) if at_barrier else None
            instruction = blocks[rank].start if at_barrier else run.program.spins.get(rank, blocks[rank].start)
            yield Standing(block, warp, instruction, barrier)


def _places(run: Run, frame: np.ndarray) -> list[tuple[int, bool]]:
    """The blocks at which lanes of a warp wait, and whether it is at a barrier."""
    blocks, resume = run.program.graph.blocks, int(frame[layout.FRAME["resume"]].astype(np.int32))
    if resume != DISPATCH:
        rank = (resume - 1) % (len(blocks) + len(run.program.forms))
        return [(rank, bool(frame[layout.FRAME["arrived"]]))]
    at = frame.view(np.int32)[layout.FRAME_AT // 4 :][: layout.WARP]
    found = set()
    for name in ("ready", "blocked", "parked", "arrived"):
        mask = int(frame[layout.FRAME[name]])
        found |= {(int(at[lane]), name == "arrived") for lane in range(layout.WARP) if mask >> lane & 1}
    return sorted(each for each in found if not blocks[each[0]].exits_only)


def _barrier(context: OsThread, frames: np.ndarray, number: int) -> tuple[int, int, int | None]:
    """A barrier's number, the threads that arrived, and those for which it opens."""
    words = context.context[layout.ARRIVED :].reshape(-1, len(layout.BARRIER_WORDS))[number]
    threads, _, _, expected = words.tolist()
    if not expected:
        # Nothing was counted: it is for all threads.
        here = frames[frames[:, layout.FRAME["barrier"]] == number, layout.FRAME["arrived"]]
        threads = sum(int(mask).bit_count() for mask in here)
    return number, threads, None if expected <= 1 else expected - 1
