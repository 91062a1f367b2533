"""Find the basic blocks of PTX in SASS.

ptxas keeps the order of most blocks, so this is an alignment: every SASS block gets the PTX block that explains it best,
by the kinds of its instructions and their source lines, and blocks come in the order of the text unless there is
evidence against it. Several SASS blocks may stem from one PTX block (an unrolled loop and its remainder), and a PTX
block may have none (a short branch became predicates).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gpulab.models.assembled.work import WEIGHTS, Chain, Work
from gpulab.models.run import KernelRun
from gpulab.sass.syntax import Code

Amounts = dict[tuple[str, Chain], float]
_LINE = 0.3
_STRANGE = 0.5
_GUARDED = 0.4
_BACKWARDS = 3.0
_SKIPPED = 0.05
_DEEPER = 3.0
_SHALLOWER = 0.3


def match(run: KernelRun, code: Code, ptx: Sequence[Work], sass: Sequence[Work]) -> np.ndarray:
    """The rank of the PTX block that each SASS block stems from.

    Parameters
    ----------
    run : KernelRun
    code : Code
    ptx, sass : sequence of Work
        What each instruction is for.

    Returns
    -------
    numpy.ndarray
        Shape (SASS blocks,), int64; -1 for blocks of ptxas's own subroutines, which PTX does not have.
    """
    order = sorted(run.program.graph.blocks, key=lambda block: block.start)
    there = [_amounts(ptx[block.start : block.stop], None) for block in order]
    guarded = [bool(instruction.guard) for instruction in code.instructions]
    main = main_blocks(code)
    chains = [chain for chain in code.chains if chain[0] in main]
    indices = [[at for n in chain for at in range(code.blocks[n].start, code.blocks[n].stop)] for chain in chains]
    here = [_amounts([sass[at] for at in own], [guarded[at] for at in own]) for own in indices]
    scores = _scores(here, there) - _depth_costs(run, code, chains, [block.rank for block in order])
    weights = np.array([sum(WEIGHTS.get(kind, 0.0) for kind, _ in amounts) for amounts in there])
    path = _best_path(scores, weights * _SKIPPED)
    found = np.full(len(code.blocks), -1)
    for chain, column in zip(chains, path, strict=True):
        found[list(chain)] = order[column].rank
    for number in sorted(code.slow & main):
        found[number] = found[number - 1]
    return found


def main_blocks(code: Code) -> set[int]:
    """The blocks of the kernel and of the user's functions, without ptxas's own subroutines for divisions and the like."""
    found: set[int] = set()
    waiting = [0] if code.blocks else []
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            block = code.blocks[number]
            waiting += block.successors
            if block.calls is not None and code.is_own_call(number):
                waiting.append(block.calls)
    return found


def _amounts(works: Sequence[Work], guarded: Sequence[bool] | None) -> Amounts:
    """How much of each kind at each place; guarded SASS counts less, it may come from a block that vanished."""
    found: Amounts = defaultdict(float)
    for number, work in enumerate(works):
        found[work.kind if work.kind in WEIGHTS else "", work.place] += (
            work.amount * _GUARDED if guarded is not None and guarded[number] else work.amount
        )
    return dict(found)


def _scores(here: Sequence[Amounts], there: Sequence[Amounts]) -> np.ndarray:
    """How well each PTX block explains each SASS block."""
    holders: dict[tuple[str, Chain], list[tuple[int, float]]] = defaultdict(list)
    at_line: dict[Chain, set[int]] = defaultdict(set)
    for number, amounts in enumerate(there):
        for (kind, place), amount in amounts.items():
            at_line[place].add(number)
            if kind:
                holders[kind, place].append((number, amount))
    scores = np.zeros((len(here), len(there)))
    for row, amounts in zip(scores, here, strict=True):
        lines = {place for _, place in amounts}
        for place in lines:
            known = list(at_line.get(place, ()))
            row -= _STRANGE / len(lines)
            row[known] += _LINE + _STRANGE / len(lines)
        for (kind, place), amount in amounts.items():
            for number, other in holders.get((kind, place), ()):
                row[number] += WEIGHTS[kind] * _likeness(amount / other)
    return scores


def _likeness(ratio: float) -> float:
    """1 for the same amount; less for multiples (unrolled so often), little for parts of it."""
    if ratio < 1:
        return ratio * 0.5
    whole = abs(ratio - round(ratio)) < 0.01
    return max(0.2, (1.0 if whole else 0.6) - 0.08 * float(np.log2(ratio)))


def _depth_costs(run: KernelRun, code: Code, chains: Sequence[tuple[int, ...]], ranks: Sequence[int]) -> np.ndarray:
    """SASS has no loop where PTX has none, but an unrolled loop or its remainder may stand outside of loops."""
    loops = getattr(run.program.graph, "loops", ())
    ptx = np.array([sum(rank in loop.members for loop in loops) for rank in ranks])
    sass = np.array([sum(chain[0] in loop.members for loop in code.loops) for chain in chains])
    deeper = sass[:, None] - ptx[None, :]
    return np.where(deeper > 0, deeper * _DEEPER, -deeper * _SHALLOWER)


def _best_path(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The best sequence of columns, one for each row; to pass over a column costs its weight, to go back the same for all."""
    rows, columns = scores.shape
    passed = np.concatenate([[0.0], np.cumsum(weights)])  # weight of all columns before each
    value = scores[0] - passed[:-1]
    came = np.zeros((rows, columns), np.int64)
    for row in range(1, rows):
        # From column a to b > a: all columns between are passed over; from a to a: nothing is.
        ahead = value + passed[1:]
        best = np.maximum.accumulate(ahead)
        leader = _argmax_before(ahead)
        forward = np.concatenate([[-np.inf], best[:-1] - passed[1:-1]])
        back = int(value.argmax())
        choices = np.stack([value, forward, np.full(columns, value[back] - _BACKWARDS)])
        chosen = choices.argmax(axis=0)
        origin = np.stack([np.arange(columns), np.concatenate([[0], leader[:-1]]), np.full(columns, back)])
        came[row] = origin[chosen, np.arange(columns)]
        value = choices[chosen, np.arange(columns)] + scores[row]
    path = [int((value - (passed[-1] - passed[1:])).argmax())]
    for row in range(rows - 1, 0, -1):
        path.append(int(came[row, path[-1]]))
    return np.array(path[::-1], np.int64)


def _argmax_before(values: np.ndarray) -> np.ndarray:
    """For each place the index of the largest value up to it."""
    best = np.maximum.accumulate(values)
    is_new = np.concatenate([[True], values[1:] > best[:-1]])
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
