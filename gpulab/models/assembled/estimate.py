"""`SassEstimate`: the SASS instructions that a launch executed, estimated from the counts of its PTX.

The counts of PTX are exact; where they go in SASS is a matching of basic blocks (`matching`) with a rule for unrolled loops
(`unrolling`). `docs/sass.md` says how far off it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpulab.models.assembled.matching import match
from gpulab.models.assembled.memory import GLOBAL, LOCAL, SHARED, accesses
from gpulab.models.assembled.unrolling import Executions
from gpulab.models.assembled.work import WEIGHTS, Work, of_ptx, of_sass
from gpulab.models.run import KernelRun
from gpulab.sass.syntax import Code

#: Work that ptxas neither adds to nor drops.
_KEPT = set(WEIGHTS) - {"convert", "sfu", "vote", "atom.shared", "fp32", "fp16", "multiply", "logic", "shift"}
_KINDS = {
    "ld": ("ld.shared", "ldmatrix"),
    "st": ("st.shared", "copy"),
    "atom": ("atom.shared",),
}


@dataclass(frozen=True, eq=False)
class SassEstimate:
    """What one launch executed in SASS; everything is *modeled*.

    Attributes
    ----------
    code : Code
        Instructions with their addresses and source lines, basic blocks, loops.
    executed : numpy.ndarray
        Warps that executed each instruction, shape (SASS instructions,), float64.
    requests : numpy.ndarray
        Requests of global, shared and local memory by each instruction, float64.
    wavefronts : numpy.ndarray
        Passes of the data stage for shared memory by each instruction, float64.
    sectors : numpy.ndarray
        Sectors of local memory by each instruction, float64.
    works : tuple of Work
        What each instruction is for.
    ptx_blocks : numpy.ndarray
        Rank of the PTX block that each instruction stems from, int64; -1 in subroutines of ptxas.
    agreement : float
        What part of the PTX's memory accesses and arithmetic the executed SASS repeats, 0 to 1: the estimate's own check.
    """

    code: Code
    executed: np.ndarray
    requests: np.ndarray
    wavefronts: np.ndarray
    sectors: np.ndarray
    works: tuple[Work, ...]
    ptx_blocks: np.ndarray
    agreement: float

    @property
    def instructions(self) -> float:
        """Warp instructions executed: what ``smsp__inst_executed.sum`` would be on the GPU."""
        return float(self.executed.sum())

    @property
    def by_opcode(self) -> dict[str, float]:
        """Warp instructions by opcode with its width (``LDS.128``), the most frequent first."""
        found: dict[str, float] = defaultdict(float)
        for instruction, count, work in zip(self.code.instructions, self.executed, self.works, strict=True):
            is_wide = work.kind in SHARED + LOCAL + ("ld.global", "st.global") and work.amount > 4
            found[f"{instruction.opcode}.{work.amount * 8}" if is_wide else instruction.opcode] += count
        return {opcode: float(count) for opcode, count in sorted(found.items(), key=lambda item: -item[1])}

    @property
    def shared_by_width(self) -> dict[int, tuple[float, float]]:
        """Requests and wavefronts of shared memory by bytes of each lane: ``{4: (requests, wavefronts), 16: …}``."""
        found: dict[int, tuple[float, float]] = {}
        for index in np.flatnonzero(self._of(SHARED)):
            requests, wavefronts = found.get(self.works[index].amount, (0.0, 0.0))
            own = float(self.requests[index]), float(self.wavefronts[index])
            found[self.works[index].amount] = (requests + own[0], wavefronts + own[1])
        return dict(sorted(found.items()))

    def shared(self, counter: str, op: str | None = None) -> float:
        """``requests`` or ``wavefronts`` of shared memory: all, or by ``ld``, ``st`` or ``atom`` alone."""
        kinds = SHARED if op is None else _KINDS[op]
        return float(getattr(self, counter)[self._of(kinds)].sum())

    def local(self, counter: str, op: str | None = None) -> float:
        """``requests`` or ``sectors`` of local memory (spills, arrays): all, or by ``ld`` or ``st`` alone."""
        return float(getattr(self, counter)[self._of(LOCAL if op is None else (f"{op}.local",))].sum())

    def metrics(self) -> dict[str, float]:
        """Metrics that differ between PTX and SASS, under Nsight Compute's names, as SASS has them."""
        found = {"smsp__inst_executed.sum": self.instructions}
        for op in ("ld", "st"):
            found[f"smsp__inst_executed_op_shared_{op}.sum"] = float(self.executed[self._of(_KINDS[op])].sum())
            found[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"] = self.shared("wavefronts", op)
        found["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"] = self.shared("wavefronts")
        for op in ("ld", "st"):
            for what in ("request", "sector"):
                found[f"l1tex__t_{what}s_pipe_lsu_mem_local_op_{op}.sum"] = self.local(f"{what}s", op)
        return found

    def _of(self, kinds: tuple[str, ...]) -> np.ndarray:
        return np.array([work.kind in kinds for work in self.works], bool)


class LazySass:
    """The SASS of one launch, disassembled and estimated when it is first asked for.

    Parameters
    ----------
    run : KernelRun
    code : callable
        Returns the SASS, or None where there is none.
    """

    def __init__(self, run: KernelRun, code: Callable[[], Code | None]) -> None:
        self.run = run
        self._code = code

    @cached_property
    def estimate(self) -> SassEstimate | None:
        """None where there is no SASS."""
        code = self._code()
        return None if code is None else estimate_sass(self.run, code)


def estimate_sass(run: KernelRun, code: Code) -> SassEstimate:
    """Estimate what a launch executed in SASS.

    Parameters
    ----------
    run : KernelRun
        The launch, counted in PTX.
    code : Code
        What ptxas made of its kernel.
    """
    program = run.program
    ptx = [
        of_ptx(instruction, form)
        for instruction, form in zip(program.function.instructions, program.forms, strict=True)
    ]
    sass = [of_sass(instruction) for instruction in code.instructions]
    matched = match(run, code, ptx, sass)
    sizes = [block.stop - block.start for block in code.blocks]
    executed = np.repeat(Executions(run, code, matched, ptx, sass).counts(), sizes)
    blocks = np.repeat(matched, sizes)
    guarded = np.array([bool(instruction.guard) for instruction in code.instructions], bool)
    found = accesses(run, executed, blocks, ptx, sass, guarded)
    repeated = np.where([work.kind in GLOBAL + SHARED for work in sass], found.requests, executed)
    agreement = _agreement(run, repeated, ptx, sass)
    return SassEstimate(code, executed, found.requests, found.wavefronts, found.sectors, tuple(sass), blocks, agreement)


def _agreement(run: KernelRun, executed: np.ndarray, ptx: list[Work], sass: list[Work]) -> float:
    """The part of PTX's work that SASS repeats; too much counts like too little."""
    counters = run.counters
    asked = np.where([work.kind in GLOBAL + SHARED for work in ptx], counters.requests, counters.warp_instructions)
    wanted, found = _sums(ptx, asked), _sums(sass, executed)
    total = missed = 0.0
    for kind, amount in wanted.items():
        weight = WEIGHTS[kind] * amount
        total += weight
        missed += weight * min(1.0, abs(found.get(kind, 0.0) / amount - 1)) if amount else 0.0
    return 1 - missed / total if total else 1.0


def _sums(works: list[Work], counts: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for work, count in zip(works, counts, strict=True):
        if work.kind in _KEPT:
            found[work.kind] += work.amount * float(count)
    return found
