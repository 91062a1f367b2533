"""How often code runs that is called: the user's functions that are not inlined, and ptxas's own subroutines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from gpulab.sass.syntax import Code


def blocks_before(code: Code, among: Iterable[int]) -> dict[int, list[int]]:
    """The blocks from which one comes to each block."""
    found: dict[int, list[int]] = defaultdict(list)
    for number in among:
        for target in code.blocks[number].successors:
            found[target].append(number)
    return found


def with_functions(code: Code, counts: np.ndarray, main: set[int]) -> np.ndarray:
    """Counts in which each of the user's functions runs as often as it is called.

    In PTX every call has its own copy of a function, and SASS blocks were matched with one of the copies. What calls itself
    has but one copy, and keeps its counts.
    """
    found = counts.copy()
    callers: dict[int, list[int]] = defaultdict(list)
    for number in sorted(main):
        entry = code.blocks[number].calls
        if entry in main:
            callers[entry].append(number)
    bodies = {entry: _body(code, entry) for entry in callers}
    reached = {entry: _called_from(code, entry, bodies) for entry in bodies}
    # Callers first: those that reach more functions.
    for entry in sorted(bodies, key=lambda each: -len(reached[each])):
        if entry in reached[entry]:
            continue
        calls, inside = found[callers[entry]].sum(), sorted(bodies[entry])
        found[inside] = found[inside] * calls / found[entry] if found[entry] else calls
    return found


def with_subroutines(code: Code, counts: np.ndarray, main: set[int]) -> np.ndarray:
    """Counts in which every block of ptxas's own subroutines runs once for each call."""
    found = counts.copy()
    for number in sorted(main):
        entry = code.blocks[number].calls
        if entry is not None and entry not in main and found[number]:
            found[sorted(_body(code, entry))] += found[number]
    return found


def _body(code: Code, entry: int) -> set[int]:
    """The blocks of a function."""
    found: set[int] = set()
    waiting = [entry]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += code.blocks[number].successors
    return found


def _called_from(code: Code, entry: int, bodies: dict[int, set[int]]) -> set[int]:
    """The functions that a function calls, and those that they call."""
    found: set[int] = set()
    waiting = [entry]
    while waiting:
        for number in bodies[waiting.pop()]:
            calls = code.blocks[number].calls
            if calls in bodies and calls not in found:
                found.add(calls)
                waiting.append(calls)
    return found
