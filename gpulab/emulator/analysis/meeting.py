"""What both engines ask about instructions at which lanes wait for each other (`gpulab.ptx.cfg.meets`)."""

from __future__ import annotations

import numpy as np

from gpulab.ptx.cfg import FlowGraph
from gpulab.ptx.opcodes import Form
from gpulab.ptx.syntax import Instruction

_MASK_POSITIONS = {"shfl": 4, "vote": 2, "match": 2, "redux": 2, "elect": 1, "bar": 0, "barrier": 0}


def mask_position(form: Form) -> int | None:
    """Place of the member mask among the operands; None where all lanes of the warp are meant."""
    return _MASK_POSITIONS.get(form.opcode)


def is_aligned(instruction: Instruction) -> bool:
    """Whether the live lanes of a warp must all be at this very barrier instruction when one of them is."""
    return instruction.opcode == "bar" or "aligned" in instruction.modifiers


def is_warp_barrier(form: Form) -> bool:
    """Whether it is ``bar.warp.sync``, which lanes may reach at different places of the text."""
    return form.opcode == "bar" and form.kind != "barrier"


def stuck_kind(form: Form) -> str:
    """The fault of lanes that wait at an instruction for others which never come."""
    if form.kind == "barrier":
        return "barrier"
    return "warp-sync/aligned" if mask_position(form) is None else "warp-sync"


def passes(graph: FlowGraph) -> np.ndarray:
    """Whether a lane in one block has passed another for good: shape (blocks, blocks), bool.

    ``passes(graph)[r, q]`` holds if q can be reached from r, but r no more from q, and q does more than exit. A lane in q
    can't come to where others wait for it at r. Lanes that return early, on a way that does not lead from r, have not
    passed it.
    """
    count = len(graph.blocks)
    reach = np.zeros((count, count), bool)
    for block in graph.blocks:
        reach[block.rank, list(block.successors)] = True
    changed = True
    while changed:
        before = reach.copy()
        for block in reversed(graph.blocks):
            for target in block.successors:
                reach[block.rank] |= reach[target]
        changed = not np.array_equal(before, reach)
    leaves = np.array([block.exits_only for block in graph.blocks])
    return reach & ~reach.T & ~leaves
