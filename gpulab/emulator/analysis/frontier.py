"""Thread frontiers: at which basic blocks lanes of a warp may wait while it runs another.

A warp always runs the lowest-ranked block at which lanes wait. A static analysis over the ranked flow graph bounds, for
each block b, the set W(b) of blocks at which lanes may wait while b runs. Two things follow from it:

- a write in b to a register needs to spare the lanes that are not active only if some block in W(b) may still read it;
- a jump from b to t needs to look for waiting lanes only if W(b) holds t or a block ranked below t.

Sets of blocks are Python ints used as bit sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpulab.ptx.cfg import Block


def members(bits: int) -> Iterator[int]:
    """Ranks in a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def frontiers(
    blocks: tuple[Block, ...], diverges: Callable[[Block], bool], ends_in_barrier: Callable[[Block], bool]
) -> list[int]:
    """W(b) for each block, by rank.

    Parameters
    ----------
    blocks : tuple of Block
        In rank order.
    diverges : callable
        Whether the lanes of a warp may leave a block for different places (an exit among them).
    ends_in_barrier : callable
        Behind a barrier no lane waits, except at blocks that only exit: anything else is a fault.
    """
    waiting = [0] * len(blocks)
    exits = sum(1 << block.rank for block in blocks if block.exits_only)
    todo, queued = list(range(len(blocks))), set(range(len(blocks)))
    while todo:
        rank = todo.pop()
        queued.discard(rank)
        block = blocks[rank]
        now = waiting[rank] & exits if ends_in_barrier(block) else waiting[rank]
        for possible in _possible(block, now, diverges(block)):
            for target in members(possible):
                added = (possible >> (target + 1) << (target + 1)) & ~waiting[target]
                if added:
                    waiting[target] |= added
                    if target not in queued:
                        queued.add(target)
                        todo.append(target)
    return waiting


def _possible(block: Block, waiting: int, diverges: bool) -> Iterator[int]:
    """Sets of blocks at which lanes may be when `block` has ended."""
    if diverges or not block.successors:
        yield waiting | sum(1 << rank for rank in block.successors)
        return
    for rank in block.successors:
        yield waiting | 1 << rank
