"""`Lines` and `Instructions`: counters per source line and per PTX instruction, as lists that show themselves as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from gpulab.errors import shown_file
from gpulab.models.instructions import InstructionCounts
from gpulab.models.lines import Line
from gpulab.profiling.table import Table

_SECTORS, _WAVEFRONTS = "memory_l2_theoretical_sectors_global", "memory_l1_wavefronts_shared"
#: Columns that are left out where all lines have nothing in them, and the value of a line.
_COLUMNS: dict[str, Callable[[Line], float]] = {
    "sectors": lambda line: line.metrics.get(_SECTORS, 0),
    "excessive sectors": lambda line: line.metrics.get(f"derived__{_SECTORS}_excessive", 0),
    "wavefronts": lambda line: line.metrics.get(_WAVEFRONTS, 0),
    "bank conflicts": lambda line: line.metrics.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 0),
    "divergent": lambda line: line.metrics.get("smsp__sass_branch_targets_threads_divergent.sum", 0),
    "atomics": lambda line: line.atomics,
}
_BAR = 10  # characters that stand for all of the time
_SHOWN = 0.005  # smaller shares of the time are not shown
_PTX_NOTE = "Counts are emulated, exact for the PTX; the share of the time is modeled."
_SASS_NOTE = (
    "Counts are emulated, exact for the PTX; the share of the time and the SASS instructions executed are modeled."
)


class Lines(list[Line]):
    """The lines of a kernel; in a notebook a table of what they executed and moved."""

    def hottest(self, count: int = 3) -> Lines:
        """The lines with the largest shares of the modeled time, largest first."""
        return Lines(sorted(self, key=lambda line: -line.time_share)[:count])

    def table(self) -> Table:
        """The lines as a table, source text last. Columns in which no line has anything are left out."""
        columns = {name: value for name, value in _COLUMNS.items() if any(value(line) for line in self)}
        has_sass = any(line.sass_instructions is not None for line in self)
        rows = []
        for line in self:
            counts = [line.metrics.get("smsp__inst_executed.sum", 0)]
            counts += [line.sass_instructions or 0] if has_sass else []
            counts += [value(line) for value in columns.values()]
            place = f"{_short(line.file)}:{line.line}"
            rows.append((place, share_bar(line.time_share), *map(whole, counts), line.text))
        names = ("PTX", *(("SASS",) if has_sass else ()), *columns)
        right = tuple(range(2, len(names) + 2))
        note = _SASS_NOTE if has_sass else _PTX_NOTE
        return Table("Counters per source line", ("line", "time", *names, "source"), tuple(rows), (note,), right)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class Instructions(list[InstructionCounts]):
    """The PTX instructions of a kernel; in a notebook a table with the SASS beside them."""

    def table(self) -> Table:
        """The instructions as a table; SASS of the same kind, line and block stands behind them."""
        shown: set[tuple[str, tuple[int, ...]]] = set()
        rows = []
        for one in self:
            key = (one.kernel, tuple(each.address for each in one.sass))
            # Instructions of a kind share their SASS; it stands beside the first of them.
            sass = "" if key in shown else "; ".join(shortened(each.text for each in one.sass))
            shown.add(key)
            counts = (one.warp_instructions, one.sectors, one.wavefronts)
            line = "" if one.line is None else str(one.line)
            rows.append((str(one.index), line, one.text, share_bar(one.time_share), *map(whole, counts), sass))
        columns = ("", "line", "PTX", "time", "executed", "sectors", "wavefronts", "SASS")
        return Table("Counters per PTX instruction", columns, tuple(rows), (_PTX_NOTE,), right=(0, 1, 4, 5, 6))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def share_bar(share: float) -> str:
    """A share of the time as text: ``62 % ######``; empty where it is next to nothing."""
    return f"{share:4.0%} {'#' * round(share * _BAR)}".rstrip() if share >= _SHOWN else ""


def whole(count: float) -> str:
    """A count with thousands separated; a modeled one rounded."""
    return f"{round(count):,}"


def shortened(texts: Sequence[str]) -> list[str]:
    """Texts of instructions by opcode: ``LDS.128 x 4``."""
    opcodes: dict[str, int] = {}
    for text in texts:
        opcode = next(word for word in text.split() if not word.startswith("@"))
        opcodes[opcode] = opcodes.get(opcode, 0) + 1
    return [opcode if count == 1 else f"{opcode} x {count}" for opcode, count in opcodes.items()]


def _short(file: str) -> str:
    return "cell" if shown_file(file) != file else PurePath(file).name
