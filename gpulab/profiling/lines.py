"""`Lines`: counters per source line as a list that shows itself as a table."""

from __future__ import annotations

from pathlib import PurePath

from gpulab.errors import shown_file
from gpulab.models.lines import Line
from gpulab.profiling.table import Table

_COLUMNS = {
    "instructions": "smsp__inst_executed.sum",
    "load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "divergent": "smsp__sass_branch_targets_threads_divergent.sum",
}


class Lines(list[Line]):
    """The lines of a kernel; in a notebook a table of what they executed and moved."""

    def table(self) -> Table:
        """The lines as a table, source text last."""
        rows = tuple(
            (
                f"{_short(line.file)}:{line.line}",
                *(f"{line.metrics.get(name, 0):,}" for name in _COLUMNS.values()),
                line.text,
            )
            for line in self
        )
        right = tuple(range(1, len(_COLUMNS) + 1))
        return Table("Counters per source line (emulated)", ("line", *_COLUMNS, "source"), rows, right=right)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _short(file: str) -> str:
    return "cell" if shown_file(file) != file else PurePath(file).name
