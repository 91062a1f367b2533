"""The source view: a kernel's lines with their costs, or one line with its PTX and its SASS side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from gpulab.errors import ArgumentError
from gpulab.models.instructions import InstructionCounts, SassCounts, instruction_counts, sass_counts
from gpulab.models.lines import Line, SassOfLines, group_by_line
from gpulab.models.shares import joined_shares, time_shares
from gpulab.profiling.judged import Judged
from gpulab.profiling.lines import Lines, share_bar, whole
from gpulab.profiling.table import Table

_COLUMNS = ("PTX", "executed", "SASS", "executed (modeled)")


def sass_of_lines(launches: Sequence[Judged]) -> SassOfLines:
    """Executed SASS instructions by line, of all launches together; computed when asked for."""

    def make() -> dict[tuple[str, int], float] | None:
        found: dict[tuple[str, int], float] = {}
        for launch in launches:
            if launch.sass is None:
                return None
            for place, mask in group_by_line(launch.sass.code.instructions, launch.record.ptx.file).items():
                found[place] = found.get(place, 0.0) + float(launch.sass.executed[mask].sum())
        return found

    return SassOfLines(make)


def instructions_of(launches: Sequence[Judged]) -> list[InstructionCounts]:
    """The PTX instructions of all launches, one launch after the other."""
    total = sum(launch.time.seconds for launch in launches)
    found = []
    for launch in launches:
        shares = shares_of([launch]) * (launch.time.seconds / total if total else 1.0)
        found += instruction_counts(launch.record.ptx.name, launch.run, shares, launch.record.ptx.file, launch.sass)
    return found


def shares_of(launches: Sequence[Judged]) -> np.ndarray:
    """The share of the modeled time of each instruction of all launches."""
    each = [
        time_shares(launch.run, launch.gpu, launch.sources.traffic, launch.time)
        for launch in launches
        if launch.sources is not None
    ]
    return joined_shares(each, [launch.time.seconds for launch in launches])


def source_table(lines: Lines, texts: dict[tuple[str, int], str]) -> Table:
    """All lines of the source, from the first to the last that executed something, with what they cost."""
    known = {(line.file, line.line): line for line in lines}
    places = sorted({*known, *(place for place in texts if _between(place, known))})
    rows = tuple(_source_row(place, known.get(place), _indented(texts.get(place, ""))) for place in places)
    return Table("Source", ("", "time", "PTX", "SASS", "source"), rows, right=(0, 2, 3))


def line_table(launches: Sequence[Judged], line: Line) -> Table:
    """The PTX and the SASS of one line, side by side, basic block by basic block."""
    rows: list[tuple[str, ...]] = []
    place = (line.file, line.line)
    for launch in launches:
        ptx = [each for each in instructions_of([launch]) if (each.file, each.line) == place]
        sass = [] if launch.sass is None else sass_counts(launch.sass, launch.record.ptx.file)
        rows += _side_by_side(ptx, [each for each in sass if (each.file, each.line) == place])
    title = f"{line.place.capitalize()}: {line.text}" if line.text else line.place.capitalize()
    reasons = [launch.record.assembled.sass_reason for launch in launches if launch.sass is None]
    notes = tuple(f"There is no SASS: {reason}" for reason in dict.fromkeys(reasons) if reason)
    return Table(title, _COLUMNS, tuple(rows), notes, right=(1, 3))


def line_of(lines: Lines, number: int) -> Line:
    """The line of this number.

    Raises
    ------
    ArgumentError
        If no instruction belongs to it.
    """
    found = [line for line in lines if line.line == number]
    if not found:
        numbers = ", ".join(str(line.line) for line in lines)
        raise ArgumentError(f"No instruction belongs to line {number!r}. These lines have some: {numbers}.")
    return max(found, key=lambda line: line.time_share)


def _between(place: tuple[str, int], known: dict[tuple[str, int], Line]) -> bool:
    numbers = [number for file, number in known if file == place[0]]
    return bool(numbers) and min(numbers) <= place[1] <= max(numbers)


def _source_row(place: tuple[str, int], line: Line | None, text: str) -> tuple[str, ...]:
    if line is None:
        return (str(place[1]), "", "", "", text)
    sass = line.sass_instructions
    executed = whole(line.metrics.get("smsp__inst_executed.sum", 0))
    return (str(place[1]), share_bar(line.time_share), executed, "" if sass is None else whole(sass), text)


def _indented(text: str) -> str:
    """The line with spaces before it that HTML keeps."""
    inner = text.lstrip()
    return "\N{NO-BREAK SPACE}" * (len(text.expandtabs(4)) - len(inner)) + inner


def _side_by_side(ptx: Sequence[InstructionCounts], sass: Sequence[SassCounts]) -> list[tuple[str, ...]]:
    rows = []
    for block in dict.fromkeys([*(each.block for each in ptx), *(each.block for each in sass)]):
        left = [(each.text, whole(each.warp_instructions)) for each in ptx if each.block == block]
        right = [(each.text, whole(each.executed)) for each in sass if each.block == block]
        rows += [(*one, *other) for one, other in zip_longest(left, right, fillvalue=("", ""))]
    return rows
