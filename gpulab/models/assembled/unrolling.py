"""How often each SASS block ran: the counts of the PTX block that it stems from, shared among the copies of loops.

ptxas unrolls loops: a PTX loop of n passes becomes, say, a SASS loop that does four of its passes at once, a piece that
does two, and a loop for the rest. Each of these parts does a number of PTX passes, which shows in how many of the PTX
loop's stores, loads or multiplications it holds; the passes are given out to the parts in their order, as the code does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.models.assembled.matching import main_blocks
from gpulab.models.assembled.subroutines import blocks_before, with_functions, with_subroutines
from gpulab.models.assembled.work import COUNTED, Chain, Work
from gpulab.models.run import KernelRun
from gpulab.ptx.syntax import Immediate
from gpulab.sass.syntax import Code

Amounts = dict[tuple[str, Chain], float]
_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")
_MAJORITY = 0.6


@dataclass(slots=True)
class _Part:
    """A part of SASS that stems from one PTX loop: a loop, or code that runs once per entry. `passes` in PTX passes."""

    blocks: list[int]
    is_loop: bool
    passes: float


class Executions:
    """Warps that executed each SASS block.

    Parameters
    ----------
    run : KernelRun
    code : Code
    matched : numpy.ndarray
        The PTX block of each SASS block, as `matching.match` finds it.
    ptx, sass : sequence of Work
    """

    def __init__(
        self, run: KernelRun, code: Code, matched: np.ndarray, ptx: Sequence[Work], sass: Sequence[Work]
    ) -> None:
        self._run, self._code, self._matched, self._ptx, self._sass = run, code, matched, ptx, sass
        self._blocks = run.program.graph.blocks
        self._loops = getattr(run.program.graph, "loops", ())
        work = run.counters.warp_instructions
        self._counts = np.array([float(work[block.start : block.stop].max()) for block in self._blocks])
        self._origins = self._origin_of_loops()
        self._work: dict[int, tuple[list[int], Amounts]] = {}
        self._inner = [self._innermost(rank) for rank in range(len(self._blocks))]

    def counts(self) -> np.ndarray:
        """One for each SASS block, float64."""
        main = main_blocks(self._code)
        found = np.array([self._counts[rank] if rank >= 0 else 0.0 for rank in self._matched])
        for number in range(len(self._loops)):
            for block, (passes, factor) in self._factors(number).items():
                found[block] = (found[block] if passes is None else passes) * factor
        found = self._flowing(self._evened(found), sorted(main))
        found[list(self._code.slow)] = 0.0
        return with_subroutines(self._code, with_functions(self._code, found, main), main)

    def _evened(self, found: np.ndarray) -> np.ndarray:
        """The same count for blocks that surely run equally often: the largest, as what is conditional ran less."""
        alike = np.array(self._code.alike, np.int64)
        most = np.zeros(len(found))
        np.maximum.at(most, alike, found)
        return most[alike]

    def _flowing(self, found: np.ndarray, main: Sequence[int]) -> np.ndarray:
        """Blocks without work of their own run no more often than the blocks before them, nor than those behind them."""
        blocks = self._code.blocks
        before = blocks_before(self._code, main)
        idle = [number for number in main if not any(
            self._sass[at].kind in COUNTED for at in range(blocks[number].start, blocks[number].stop))]  # fmt: skip
        for number in idle:
            if before[number]:
                found[number] = min(found[number], found[before[number]].sum())
        for number in reversed(idle):
            ends = self._code.instructions[blocks[number].stop - 1].opcode in ("EXIT", "RET")
            if blocks[number].successors and not ends:
                found[number] = min(found[number], found[list(blocks[number].successors)].sum())
        return found

    # ---- loops

    def _innermost(self, rank: int) -> int | None:
        inside = [number for number, loop in enumerate(self._loops) if rank in loop.members]
        return min(inside, key=lambda number: len(self._loops[number].members), default=None)

    def _factors(self, number: int) -> dict[int, tuple[float | None, float]]:
        """For each SASS block of a PTX loop what part of the passes it does, of its own count or of this one."""
        members = self._loops[number].members
        total = self._total(number)
        mine = [block for block, rank in enumerate(self._matched) if rank in members]
        if not mine or not total:
            return {}
        entries = self._entries(number)
        factors: dict[int, tuple[float | None, float]] = {}
        parts, outside = self._parts(number, mine)
        for part, done in zip(parts, _given_out(parts, total / entries), strict=True):
            share = done * entries / total
            factors.update(dict.fromkeys(part.blocks, (None, share)))
            if part.is_loop:
                factors[min(part.blocks)] = (total, share)
        # What stands outside of the loop and does none of its work prepares it: once per entry.
        factors.update({block: (total, min(1.0, entries / total)) for block in outside})
        return factors

    def _total(self, number: int) -> float:
        """Passes of a loop: how often its ends ran from which it starts again."""
        loop = self._loops[number]
        ends = sum(self._counts[rank] for rank in loop.members if loop.head in self._blocks[rank].successors)
        return float(min(ends, self._counts[loop.head]))

    def _entries(self, number: int) -> float:
        """Warps that come into a loop from outside; never more than passes."""
        loop = self._loops[number]
        into = [block for block in self._blocks if loop.head in block.successors and block.rank not in loop.members]
        head = self._counts[loop.head]
        coming = sum(min(self._counts[block.rank], head) for block in into)
        if not coming:
            coming = float(self._run.counters.warps)
        return max(1.0, min(head, coming))

    def _parts(self, number: int, mine: Sequence[int]) -> tuple[list[_Part], list[int]]:
        """The parts of a PTX loop in SASS, in order, and blocks that hold none of its work."""
        home = self._sass_loops(number)
        groups: dict[tuple[int, int], list[int]] = {}
        run = 0
        previous = None
        for block in mine:
            loop = home.get(block)
            if loop is None and (previous is None or block != previous + 1 or home.get(previous) is not None):
                run += 1
            groups.setdefault((0, loop) if loop is not None else (1, run), []).append(block)
            previous = block
        parts, outside = [], []
        for (straight, _), blocks in groups.items():
            if straight:
                working = [block for block in blocks if self._passes(number, [block]) is not None]
                outside += [block for block in blocks if block not in working]
                blocks = working
            if blocks:
                parts.append(_Part(blocks, not straight, self._passes(number, blocks) or 1.0))
        return parts, outside

    def _sass_loops(self, number: int) -> dict[int, int]:
        """The SASS loop that is a part of this PTX loop, for each block in one."""
        home: dict[int, int] = {}
        for index, mine in enumerate(self._origins):
            if mine == number:
                for block in self._code.loops[index].members:
                    home.setdefault(block, index)
        return home

    def _origin_of_loops(self) -> list[int | None]:
        """For each SASS loop the PTX loop that it stems from: the smallest that has all of its work."""
        sizes = sorted(range(len(self._loops)), key=lambda number: len(self._loops[number].members))
        found = []
        for loop in self._code.loops:
            fitting = (number for number in sizes if self._fits(loop.members, self._loops[number].members))
            found.append(next(fitting, None))
        for index in range(len(found) - 1, -1, -1):
            inside = [found[n] for n, loop in enumerate(self._code.loops) if loop.parent == index]
            # Of two nested loops the outer one is that of the loop around this one, if there is such a loop.
            if found[index] is not None and found[index] in inside:
                members = self._loops[found[index]].members
                around = (number for number in sizes if members < self._loops[number].members)
                found[index] = next(around, found[index])
        return found

    def _fits(self, blocks: frozenset[int], members: frozenset[int]) -> bool:
        """Whether most of a SASS loop, and all of its work, stems from these PTX blocks."""
        sizes = {block: self._code.blocks[block].stop - self._code.blocks[block].start for block in blocks}
        strangers = [block for block in blocks if self._matched[block] not in members]
        works = any(
            self._sass[at].kind
            for b in strangers
            for at in range(self._code.blocks[b].start, self._code.blocks[b].stop)
        )
        return not works and sum(sizes[block] for block in strangers) <= (1 - _MAJORITY) * sum(sizes.values())

    def _wanted(self, number: int) -> tuple[list[int], Amounts]:
        """The blocks of a PTX loop that ran and belong to no loop inside it, and their work."""
        if number not in self._work:
            ranks = [rank for rank, inner in enumerate(self._inner) if inner == number and self._counts[rank]]
            spans = [self._ptx[self._blocks[rank].start : self._blocks[rank].stop] for rank in ranks]
            self._work[number] = ranks, _amounts([work for span in spans for work in span])
        return self._work[number]

    def _passes(self, number: int, blocks: Sequence[int]) -> float | None:
        """How many passes of a PTX loop some SASS blocks do at once; None if they hold nothing of its work."""
        ranks, wanted = self._wanted(number)
        at = [block for block in blocks if self._matched[block] in ranks]
        spans = [(self._code.blocks[block].start, self._code.blocks[block].stop) for block in at]
        present = _amounts([work for start, stop in spans for work in self._sass[start:stop]])
        for kind in COUNTED:
            ratios = [
                present.get(key, 0.0) / amount
                for key, amount in wanted.items()
                if key[0] == kind and present.get(key, 0.0)
            ]
            if ratios:
                return max(1.0, float(round(np.median(ratios))))
        return _ratio_of_steps(self._steps(number), _sass_steps(self._code, blocks))

    def _steps(self, number: int) -> list[int]:
        """What a pass of a PTX loop adds to its counters and pointers."""
        found = []
        for rank in self._loops[number].members:
            for instruction in self._run.program.function.instructions[
                self._blocks[rank].start : self._blocks[rank].stop
            ]:
                operands = instruction.operands
                if instruction.opcode == "add" and operands[0] == operands[1] and isinstance(operands[2], Immediate):
                    found.append(int(operands[2].value))
        return found


def _amounts(works: Sequence[Work]) -> Amounts:
    found: Amounts = defaultdict(float)
    for work in works:
        if work.kind:
            found[work.kind, work.place] += work.amount
    return found


def _sass_steps(code: Code, blocks: Sequence[int]) -> list[int]:
    """What some SASS blocks add to registers in place."""
    found = []
    for block in blocks:
        for instruction in code.instructions[code.blocks[block].start : code.blocks[block].stop]:
            names = [operand.removesuffix(".reuse") for operand in instruction.operands]
            if instruction.opcode in ("IADD3", "UIADD3", "VIADD", "IADD") and names[0] in names[1:]:
                found += [int(name, 16) for name in names[1:] if _HEXADECIMAL.fullmatch(name)]
    return found


def _ratio_of_steps(ptx: Sequence[int], sass: Sequence[int]) -> float | None:
    """How many PTX passes SASS counters move on by at once: the whole ratio that most pairs of steps have."""
    ratios = [mine // theirs for mine in sass for theirs in ptx if theirs and mine % theirs == 0 and mine // theirs > 0]
    return float(max(set(ratios), key=lambda ratio: (ratios.count(ratio), -ratio))) if ratios else None


def _given_out(parts: Sequence[_Part], passes: float) -> list[float]:
    """How often each part runs per entry of a loop of so many passes: each does what it can, the last all that is left."""
    left, done = passes, []
    last = max([number for number, part in enumerate(parts) if part.is_loop], default=len(parts) - 1)
    for number, part in enumerate(parts):
        if number == last:
            times = max(0.0, left) / part.passes
        elif part.is_loop:
            # Of loops of several lengths only the mean is known: on average half of a part's passes are left over.
            leftover = 0.0 if passes == int(passes) else (part.passes - 1) / 2
            times = max(0.0, (left - leftover) / part.passes)
            times = float(int(times + 1e-9)) if passes == int(passes) else times
        else:
            times = 1.0 if left >= part.passes else max(0.0, left) / part.passes if passes != int(passes) else 0.0
        left -= times * part.passes
        done.append(times)
    return done
