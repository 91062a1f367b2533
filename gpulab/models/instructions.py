"""Counters per PTX instruction, with the SASS that ptxas made of it beside it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpulab.models.assembled import SassEstimate
from gpulab.models.assembled.work import of_ptx
from gpulab.models.lines import place_of
from gpulab.models.run import KernelRun


@dataclass(frozen=True, slots=True)
class SassCounts:
    """One SASS instruction; all counts are *modeled*.

    Attributes
    ----------
    address : int
        Byte offset in the kernel's code.
    text : str
    file, line : str, int or None
        Of the user's source.
    executed : float
        Warps that executed it.
    requests, wavefronts, sectors : float
        Requests of any memory, passes of the data stage for shared memory, sectors of local memory.
    block : int
        Rank of the basic block of PTX that it stems from; -1 in subroutines of ptxas.
    """

    address: int
    text: str
    file: str | None
    line: int | None
    executed: float
    requests: float
    wavefronts: float
    sectors: float
    block: int


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """One PTX instruction; its counts are *emulated*.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    index : int
        Place in the kernel.
    text : str
    file, line : str, int or None
        Of the user's source.
    block : int
        Rank of its basic block, -1 if nothing leads to it.
    warp_instructions, thread_instructions_pred_on, divergent_branches : int
    requests, sectors, sectors_ideal, wavefronts, wavefronts_ideal : int
        As `gpulab.counters.Counters` has them.
    time_share : float
        *Modeled*: its share of the time, 0 to 1.
    sass : tuple of SassCounts
        Memory accesses, arithmetic and barriers of the same kind and line in the SASS of its block. Other instructions
        (addresses, comparisons, moves) are too much changed by ptxas; `Profile.source` has them by line.
    """

    kernel: str
    index: int
    text: str
    file: str | None
    line: int | None
    block: int
    warp_instructions: int
    thread_instructions_pred_on: int
    divergent_branches: int
    requests: int
    sectors: int
    sectors_ideal: int
    wavefronts: int
    wavefronts_ideal: int
    time_share: float
    sass: tuple[SassCounts, ...] = ()


_COUNTERS = (
    "warp_instructions",
    "thread_instructions_pred_on",
    "divergent_branches",
    "requests",
    "sectors",
    "sectors_ideal",
    "wavefronts",
    "wavefronts_ideal",
)


def instruction_counts(
    name: str, run: KernelRun, shares: np.ndarray, file: str | None, sass: SassEstimate | None
) -> list[InstructionCounts]:
    """The PTX instructions of one launch.

    Parameters
    ----------
    name : str
        The kernel's.
    run : KernelRun
    shares : numpy.ndarray
        Of the modeled time, one for each instruction.
    file : str or None
        The user's source file, as the PTX names it.
    sass : SassEstimate or None
    """
    blocks = np.full(len(run.program.forms), -1)
    for block in run.program.graph.blocks:
        blocks[block.start : block.stop] = block.rank
    beside = _by_work(sass, file)
    columns = [getattr(run.counters, counter) for counter in _COUNTERS]
    found = []
    for index, instruction in enumerate(run.program.function.instructions):
        if instruction.synthetic:
            continue
        work = of_ptx(instruction, run.program.forms[index])
        place = place_of(instruction.location, file) or (None, None)
        counts = [int(column[index]) for column in columns]
        same = beside.get((work.kind, work.place, int(blocks[index])), ())
        row = (name, index, instruction.text, *place, int(blocks[index]), *counts, float(shares[index]), tuple(same))
        found.append(InstructionCounts(*row))
    return found


def sass_counts(sass: SassEstimate, file: str | None) -> list[SassCounts]:
    """The SASS instructions of one launch, in order of address."""
    columns = (sass.executed, sass.requests, sass.wavefronts, sass.sectors)
    found = []
    for index, instruction in enumerate(sass.code.instructions):
        place = place_of(instruction.location, file) or (None, None)
        counts = [float(column[index]) for column in columns]
        found.append(SassCounts(instruction.address, instruction.text, *place, *counts, int(sass.ptx_blocks[index])))
    return found


def _by_work(sass: SassEstimate | None, file: str | None) -> dict[tuple[object, ...], list[SassCounts]]:
    found: dict[tuple[object, ...], list[SassCounts]] = defaultdict(list)
    if sass is not None:
        for counts, work in zip(sass_counts(sass, file), sass.works, strict=True):
            if work.kind:
                found[work.kind, work.place, counts.block].append(counts)
    return found
