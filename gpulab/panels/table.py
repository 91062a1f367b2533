"""The counters of a comparison as an HTML table: plain names first, Nsight Compute's beside them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.plots.bars import speedup_text
from gpulab.units import count_text, range_text, seconds_text, three_digits

_LOAD, _STORE = "pipe_lsu_mem_global_op_ld", "pipe_lsu_mem_global_op_st"


@dataclass(frozen=True, slots=True)
class Row:
    """A metric that a learner meets in a panel: its plain name, ncu's name, and where its value comes from."""

    plain: str
    name: str
    how: str


# What a launch did first, what it occupied last. Rows that are zero or unknown for every rung are left out.
ROWS = (
    Row("sectors per load request", f"l1tex__average_t_sectors_per_request_{_LOAD}.ratio", "emulated"),
    Row("sectors per store request", f"l1tex__average_t_sectors_per_request_{_STORE}.ratio", "emulated"),
    Row("load sectors", f"l1tex__t_sectors_{_LOAD}.sum", "emulated"),
    Row("store sectors", f"l1tex__t_sectors_{_STORE}.sum", "emulated"),
    Row("shared bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "emulated"),
    Row("warp instructions", "smsp__inst_executed.sum", "emulated"),
    Row("DRAM bytes", "dram__bytes.sum", "modeled"),
    Row("registers per thread", "launch__registers_per_thread", "ptxas"),
    Row("theoretical occupancy, %", "sm__maximum_warps_per_active_cycle_pct", "calculated"),
)


def counter_table(rungs: Sequence[Any], chosen: str, caption: str) -> str:
    """An HTML table with a column for each rung and a row for each metric, times first.

    Parameters
    ----------
    rungs : sequence of RungResult
        With ``name`` and ``profile`` (``metrics``, ``time``).
    chosen : str
        Name of the rung whose column is marked.
    caption : str
    """
    head = "".join(_cell("th", html.escape(rung.name), rung.name == chosen, ' scope="col"') for rung in rungs)
    body = [_time_row(rungs, chosen)]
    body += [line for row in ROWS if (line := _metric_row(row, rungs, chosen))]
    return (
        f'<table class="gpulab-table"><caption>{html.escape(caption)}</caption>'
        f'<thead><tr><th scope="col">counter</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    )


def _time_row(rungs: Sequence[Any], chosen: str) -> str:
    times = [rung.profile.time for rung in rungs]
    sources = " and ".join(dict.fromkeys(time.source for time in times))
    cells = [f"{seconds_text(time.seconds)} <small>{_time_notes(time, times[0])}</small>" for time in times]
    return _line("time", f"{sources}, with its range", cells, rungs, chosen)


def _time_notes(time: Any, first: Any) -> str:
    speedup = speedup_text(time, first)
    return range_text(time.low, time.high) + (f"<br>{speedup}" if speedup else "")


def _metric_row(row: Row, rungs: Sequence[Any], chosen: str) -> str:
    values = [rung.profile.metrics.get(row.name) for rung in rungs]
    if not any(values):
        return ""
    cells = [_value_cell(value, values[0]) for value in values]
    return _line(row.plain, f"{row.name} ({row.how})", cells, rungs, chosen)


def _value_cell(value: float | None, first: float | None) -> str:
    return "none" if value is None else f"{count_text(value)} <small>{_change(value, first)}</small>"


def _change(value: float, first: float | None) -> str:
    """The value against that of the first rung, in words that need no sign."""
    if not first or not value or value == first:
        return ""
    factor = value / first
    return f"{three_digits(factor)} times as many" if factor > 1 else f"1/{three_digits(1 / factor)}"


def _line(plain: str, fine: str, cells: Sequence[str], rungs: Sequence[Any], chosen: str) -> str:
    marked = (_cell("td", cell, rung.name == chosen) for cell, rung in zip(cells, rungs, strict=True))
    return f'<tr><th scope="row">{plain}<br><small>{fine}</small></th>{"".join(marked)}</tr>'


def _cell(tag: str, content: str, chosen: bool, extra: str = "") -> str:
    mark = ' class="chosen"' if chosen else ""
    return f"<{tag}{extra}{mark}>{content}</{tag}>"
