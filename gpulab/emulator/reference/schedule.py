"""Who runs when, in the interpreter: the lanes of a warp, the warps of a block, and the blocks of a launch.

Lanes: a warp runs the lowest-ranked basic block at which lanes of it are ready, with exactly these lanes active; at its
end they move on. So lanes that parted meet again at the first block that all of them reach. Lanes that wait for others of
their warp (`Warp.blocked`) or for the block (`Warp.arrived`) are not ready. A loop that may wait for other threads
(`Program.spins`) is run so many times, then its lanes are *parked* until no other lane of the warp can go on; then the
warp *yields*.

Warps: those of a block run in turn, each until it ends, waits at a barrier or yields. Blocks: in linear order, each to its
end; a block of which no warp got any further in a round stays in flight, and the next one is begun beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gpulab.emulator.program import SPIN_BUDGET
from gpulab.emulator.reference.barrier import open_for_all
from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.waiting import missed, nothing_moves
from gpulab.emulator.reference.warp import EXITED, Launch, Status, ThreadBlock, Warp
from gpulab.ptx.cfg import Block


class Schedule:
    """Runs blocks.

    Parameters
    ----------
    launch : Launch
    tally : Tally
    run_basic_block : callable
        Runs one basic block of a warp with its active lanes.
    resident : int
        How many blocks may be in flight.
    """

    def __init__(
        self, launch: Launch, tally: Tally, run_basic_block: Callable[[Warp, Block], None], resident: int
    ) -> None:
        self._launch = launch
        self._tally = tally
        self._run_basic_block = run_basic_block
        self._resident = resident

    def run(self, numbers: Iterable[int]) -> None:
        """Run these blocks to their end."""
        waiting, flying = iter(numbers), list[ThreadBlock]()
        while True:
            self._launch.progress = False
            flying = [stuck for block in flying if (stuck := self._advance(block, waiting)) is not None]
            while len(flying) < self._resident and (block := self._begin(waiting)) is not None:
                stuck = self._advance(block, waiting)
                if stuck is not None:
                    flying.append(stuck)
            if not flying:
                return
            if not self._launch.progress:
                raise nothing_moves(flying, sum(1 for _ in waiting))

    def _begin(self, waiting: Iterator[int]) -> ThreadBlock | None:
        number = next(waiting, None)
        if number is None:
            return None
        self._launch.progress = True
        return ThreadBlock(self._launch, number, self._tally.start_block())

    def _advance(self, block: ThreadBlock | None, waiting: Iterator[int]) -> ThreadBlock | None:
        """Run a block until it is stuck, and if it ends the blocks after it; None if there is none left."""
        while block is not None:
            self._tally.enter_block(block.l1)
            if not self._run_block(block):
                return block
            block = self._begin(waiting)
        return None

    def _run_block(self, block: ThreadBlock) -> bool:
        """Run a block to its end, or until a round in which no warp got further: whether it ended."""
        while True:
            ran = [self._run_warp(warp) for warp in block.warps if warp.status is Status.READY]
            moved = any(outcome is not Status.READY for outcome in ran)
            self._launch.progress |= moved
            left = [warp for warp in block.warps if warp.status is not Status.FINISHED]
            if not left:
                return True
            if any(warp.status is Status.READY for warp in left):
                if not moved:
                    return False
            elif not open_for_all(block):
                raise nothing_moves([block], 0)

    # ---- one warp

    def _run_warp(self, warp: Warp) -> Status:
        """Run a warp until it ends, waits at a barrier, or yields (it is ready then)."""
        graph = self._launch.program.graph
        while True:
            ready = warp.ready
            if ready.any() and not warp.waits_whole:
                rank = int(warp.at[ready].min())
                warp.active = ready & (warp.at == rank)
                self._run_basic_block(warp, graph.blocks[rank])
            elif warp.recheck and warp.blocked.any():
                # Lanes that the blocked ones wait for may have exited.
                warp.blocked[:] = warp.recheck = False
            elif warp.parked.any():
                self._launch.progress |= warp.has_changed(warp.parked)
                warp.parked[:] = False
                return Status.READY
            else:
                warp.status = _end_of_run(warp)
                return warp.status


def _end_of_run(warp: Warp) -> Status:
    """What becomes of a warp of which no lane can go on."""
    if warp.arrived.any():
        return Status.WAITING
    if warp.blocked.any():
        lanes = np.flatnonzero(warp.blocked)
        raise missed(warp, int(lanes[np.argmin(warp.at[lanes])]))
    return Status.FINISHED


# ---- moving on


def move_on(warp: Warp, block: Block, lanes: np.ndarray, goals: np.ndarray) -> None:
    """Send lanes that ran a block to the blocks that they go to; those that wait in a loop may be parked."""
    warp.at = np.where(lanes, goals, warp.at)
    if (goals[lanes] == EXITED).any():
        warp.recheck = True
    for target in np.unique(goals[lanes]).tolist():
        if target in warp.launch.program.spins and target <= block.rank:
            warp.budget -= 1
            if warp.budget == 0:
                warp.budget = SPIN_BUDGET
                warp.parked |= lanes & (goals == target)
