"""Barriers of a block in the interpreter (PTX ISA, bar and barrier).

Threads arrive at one of 16 barriers. Without a number of threads it opens when all threads that have not exited wait at
it; with one, as soon as so many have arrived, by waiting or by `arrive`. A warp whose live lanes have all arrived counts as
32 threads there, as on hardware.
"""

from __future__ import annotations

import numpy as np

from gpulab.emulator.reference.values import LANES
from gpulab.emulator.reference.warp import EXITED, Barrier, Status, ThreadBlock, Warp

BARRIERS = 16


def arrive(warp: Warp, index: int, on: np.ndarray) -> None:
    """Lanes arrive at a barrier, and wait there (`Warp.arrived`) unless it is an `arrive`."""
    program = warp.launch.program
    instruction, form = program.function.instructions[index], program.forms[index]
    operands = {role.name: (each, role) for each, role in zip(instruction.operands, form.roles, strict=False)}
    first = int(np.flatnonzero(on)[0])
    number = int(warp.read(*operands["a"])[first]) % BARRIERS
    count = int(warp.read(*operands["b"])[first]) if "b" in operands else None
    barrier = warp.block.barriers.setdefault(number, Barrier(count))
    _check(warp, index, first, number, count, barrier)
    barrier.threads += int(on.sum())
    if form.mode == "red":
        barrier.holding += int((warp.read(*operands["c"]) & on).sum())
    everyone = not (warp.live & ~on & ~warp.arrived).any()
    barrier.credit += int((on | (~warp.live & everyone)).sum())
    if form.mode != "arrive":
        warp.barrier = number
        warp.arrived |= on
    if count is not None and barrier.credit >= count:
        open_barrier(warp.block, number)


def _check(warp: Warp, index: int, lane: int, number: int, count: int | None, barrier: Barrier) -> None:
    """Refuse a number of threads that no barrier can have, two at a time, and lanes of a warp at two barriers."""
    most = warp.launch.config.warps_per_block * LANES
    if count is not None and (count % LANES or not 0 < count <= most):
        raise warp.fault("barrier/count", index, lane)
    if barrier.expected != count:
        raise warp.fault("barrier/mixed", index, lane)
    if warp.arrived.any() and warp.barrier != number:
        raise warp.fault("barrier/two", index, lane)


def open_barrier(block: ThreadBlock, number: int) -> None:
    """Let all lanes go on that wait at a barrier, with its result."""
    barrier = block.barriers.pop(number)
    program = block.launch.program
    for warp in block.warps:
        if not warp.arrived.any() or warp.barrier != number:
            continue
        for rank in np.unique(warp.at[warp.arrived]).tolist():
            here = program.graph.blocks[rank]
            _deliver(warp, here.start, barrier, warp.arrived & (warp.at == rank))
        behind = np.array([here.successors[-1] if here.successors else EXITED for here in program.graph.blocks])
        warp.at = np.where(warp.arrived, behind[warp.at], warp.at)
        warp.arrived[:] = False
        if warp.status is Status.WAITING:
            warp.status = Status.READY


def open_for_all(block: ThreadBlock) -> bool:
    """Open the barrier at which every thread waits that has not exited; whether there was one."""
    left = [warp for warp in block.warps if warp.status is not Status.FINISHED]
    number = left[0].barrier
    alike = all(warp.barrier == number and not warp.blocked.any() for warp in left)
    if not alike or block.barriers[number].expected is not None:
        return False
    open_barrier(block, number)
    return True


def _deliver(warp: Warp, index: int, barrier: Barrier, lanes: np.ndarray) -> None:
    """Give lanes the result of a reducing barrier."""
    form = warp.launch.program.forms[index]
    if form.mode != "red":
        return
    holding = barrier.holding
    result = {"popc": holding, "and": holding == barrier.threads, "or": holding > 0}[form.operation or ""]
    destination = warp.launch.program.function.instructions[index].operands[0]
    value = np.full(LANES, result, np.uint32 if form.operation == "popc" else bool)
    warp.write(destination, value, form.roles[0].type, lanes)
