"""Counters per source line: which line moves the sectors, meets in a bank, diverges, takes the time."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpulab.models.metrics import METRICS, Metrics, Sources
from gpulab.models.traffic import ATOMICS
from gpulab.ptx.syntax import Instruction, Location
from gpulab.sass import Instruction as SassInstruction

Place = tuple[str, int]


class SassOfLines:
    """Executed SASS instructions by line, computed when they are first asked for.

    Parameters
    ----------
    make : callable
        Returns them by (file, line), or None where there is no SASS.
    """

    def __init__(self, make: Callable[[], Mapping[Place, float] | None]) -> None:
        self._make = make

    @cached_property
    def _found(self) -> Mapping[Place, float] | None:
        return self._make()

    def of(self, place: Place) -> float | None:
        """Those of a line; 0 if ptxas made nothing of it, None where there is no SASS."""
        return None if self._found is None else self._found.get(place, 0.0)


@dataclass(frozen=True, slots=True)
class Line:
    """What one source line did.

    Attributes
    ----------
    file : str
    line : int
        1-based.
    text : str
        The line itself, where the source is known; else empty.
    metrics : Metrics
        The emulated metrics of this line alone: sums over all lines are the launch's.
    time_share : float
        *Modeled*: the share of the time, 0 to 1, that is spent on it (`gpulab.models.shares`); over all instructions, those
        of no line included, these add up to 1.
    atomics : int
        Requests of atomics and reductions, global and shared.
    """

    file: str
    line: int
    text: str
    metrics: Metrics
    time_share: float = 0.0
    atomics: int = 0
    _sass: SassOfLines | None = field(default=None, repr=False, compare=False)

    @property
    def sass_instructions(self) -> float | None:
        """*Modeled*: SASS instructions that warps executed for it; None where there is no SASS."""
        return None if self._sass is None else self._sass.of((self.file, self.line))

    @property
    def place(self) -> str:
        """How messages name it: ``line 12``."""
        return f"line {self.line}"


def place_of(location: Location | None, file: str | None) -> tuple[str, int] | None:
    """The user's own file and line of an instruction.

    What was inlined from another file (a header, Numba's library) belongs to the line in `file` that called it.
    """
    while location is not None:
        if file is None or location.file == file or location.inlined_at is None:
            return location.file, location.line
        location = location.inlined_at
    return None


def group_by_line(
    instructions: Sequence[Instruction | SassInstruction], file: str | None
) -> dict[tuple[str, int], np.ndarray]:
    """Instruction masks by (file, line), in order of file and line. Code that belongs to no line is left out."""
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, instruction in enumerate(instructions):
        place = place_of(instruction.location, file)
        if place is not None and place[1] > 0:
            groups[place].append(index)
    masks = {place: np.zeros(len(instructions), bool) for place in sorted(groups)}
    for place, mask in masks.items():
        mask[groups[place]] = True
    return masks


def lines(
    sources: Sources,
    instructions: Sequence[Instruction],
    file: str | None = None,
    texts: Mapping[tuple[str, int], str] | None = None,
    shares: np.ndarray | None = None,
    sass: SassOfLines | None = None,
) -> list[Line]:
    """The lines of a kernel with their metrics.

    Parameters
    ----------
    sources : Sources
        The launch, or several.
    instructions : sequence of Instruction
        Of all launches, in the order of ``sources.tally``.
    file : str, optional
        The user's source file, as the PTX names it.
    texts : mapping, optional
        Text of source lines by (file, line).
    shares : numpy.ndarray, optional
        Of the modeled time, one for each instruction.
    sass : SassOfLines, optional
    """
    rows = [metric for metric in METRICS.values() if metric.how == "emulated" and "local" not in metric.name]
    found = []
    for place, mask in group_by_line(instructions, file).items():
        part = dataclasses.replace(sources, tally=sources.tally.only(mask))
        values = {metric.name: metric.value(part) for metric in rows}
        known = Metrics({key: value for key, value in values.items() if value is not None})
        share = 0.0 if shares is None else float(shares[mask].sum())
        atomics = part.tally.total("requests", kinds=ATOMICS)
        found.append(Line(*place, (texts or {}).get(place, "").strip(), known, share, atomics, sass))
    return found
