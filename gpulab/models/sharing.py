"""L1 misses, corrected for warps of a block that read the same data at the same time.

The emulator runs the warps of a block one after the other, so that its L1 has lost the first lines of a long walk when the
next warp begins the same walk. On hardware the warps walk together and each sector is missed once for all of them. A load
is shared in this way if its address does not depend on which warp of the block executes it.
"""

from __future__ import annotations

import numpy as np

from gpulab.launch import WARP_SIZE, Dim3
from gpulab.models.run import KernelRun
from gpulab.ptx.opcodes import read_registers, written_registers
from gpulab.ptx.syntax import Instruction, Special


def l1_misses(run: KernelRun) -> np.ndarray:
    """Load sectors that miss in L1, float64, one for each instruction."""
    misses = run.counters.l1_miss_sectors.astype(float)
    warps = run.config.warps_per_block
    if warps == 1 or not misses.any():
        return misses
    once_for_all = np.minimum(misses, run.counters.sectors / warps)
    return np.where(shared_by_warps(run), once_for_all, misses)


def shared_by_warps(run: KernelRun) -> np.ndarray:
    """Boolean, one for each instruction: global loads whose address is the same in all warps of a block."""
    instructions, forms = run.program.function.instructions, run.program.forms
    own = _warp_dependent(run)
    return np.array(
        [
            form.kind == "load"
            and form.space in ("global", "generic")
            and not own & set(read_registers(instruction, form))
            for instruction, form in zip(instructions, forms, strict=True)
        ]
    )


def _warp_dependent(run: KernelRun) -> set[str]:
    """Registers that may differ between the warps of a block (in the same iteration of a loop)."""
    sources = _special_sources(run.config.block)
    steps = []
    for instruction, form in zip(run.program.function.instructions, run.program.forms, strict=True):
        starts = _reads_special(instruction, sources) or form.kind == "atomic" or (
            form.kind == "load" and form.space in ("shared", "local", "call")
        )  # fmt: skip
        steps.append((starts, set(read_registers(instruction, form)), set(written_registers(instruction, form))))
    own: set[str] = set()
    while True:
        found = {name for starts, reads, writes in steps if starts or own & reads for name in writes}
        if found <= own:
            return own
        own |= found


def _special_sources(block: Dim3) -> set[str]:
    """Special registers that tell warps apart. A row of up to 32 threads that divides a warp does not."""
    row = block[0]
    names = {"%warpid", "%clock", "%clock64", "%tid.y", "%tid.z"}
    return names if row <= WARP_SIZE and WARP_SIZE % row == 0 else {*names, "%tid.x"}


def _reads_special(instruction: Instruction, names: set[str]) -> bool:
    return any(isinstance(operand, Special) and operand.name in names for operand in instruction.operands)
