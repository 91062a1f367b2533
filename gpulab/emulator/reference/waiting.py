"""Where the warps and lanes of the interpreter stand that wait, and the faults of those that wait in vain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpulab.emulator.analysis.meeting import stuck_kind
from gpulab.emulator.deadlock import Standing, absent, deadlock
from gpulab.emulator.reference.warp import ThreadBlock, Warp
from gpulab.errors import KernelFault


def missed(warp: Warp, lane: int) -> KernelFault:
    """The fault of a blocked lane, which waits for others of its warp that never come."""
    program, start = warp.launch.program, warp.launch.program.graph.blocks[warp.at[lane]].start
    wanted = [other for other in np.flatnonzero(warp.live).tolist() if int(warp.wanted[lane]) >> other & 1]
    return absent(
        program,
        warp.launch.config,
        stuck_kind(program.forms[start]),
        warp.block.number,
        int(warp.threads[lane]),
        start,
        {other: _standing(warp, other, bool(warp.blocked[other] or warp.parked[other])) for other in wanted},
    )


def nothing_moves(flying: Sequence[ThreadBlock], not_begun: int) -> KernelFault:
    """The fault of a launch in which nothing can go on."""
    launch = flying[0].launch
    standings = [each for block in flying for warp in block.warps for each in _standings(warp)]
    return deadlock(launch.program, launch.config, standings, not_begun)


def _standings(warp: Warp) -> Iterator[Standing]:
    """Where the lanes of a warp stand, those at one place together."""
    found = {(int(warp.at[lane]), bool(warp.arrived[lane])): lane for lane in np.flatnonzero(warp.live).tolist()[::-1]}
    for _, lane in sorted(found.items()):
        yield _standing(warp, lane, waits=True)


def _standing(warp: Warp, lane: int, waits: bool) -> Standing:
    program, block, rank = warp.launch.program, warp.block, int(warp.at[lane])
    start = program.graph.blocks[rank].start
    if warp.arrived[lane]:
        barrier = block.barriers[warp.barrier]
        return Standing(block.number, warp.number, start, (warp.barrier, barrier.threads, barrier.expected))
    return Standing(block.number, warp.number, program.spins.get(rank, start), None, waits)
