"""The table of counters: plain names with ncu's beside them, values and changes, nothing that is zero everywhere."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from gpulab.models.metrics import METRICS
from gpulab.panels.table import ROWS, counter_table

RATIO = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def rung(name, seconds, **metrics):
    time = SimpleNamespace(seconds=seconds, low=seconds * 0.9, high=seconds * 1.1, source="modeled")
    return SimpleNamespace(name=name, profile=SimpleNamespace(time=time, metrics=metrics))


@pytest.fixture
def cells():
    """Row header to the texts of its cells."""
    rungs = [
        rung("strided", 80e-6, **{RATIO: 32.0, LOADS: 1_048_576, CONFLICTS: 0}),
        rung("coalesced", 20e-6, **{RATIO: 4.0, LOADS: 131_072, CONFLICTS: 0}),
    ]
    html = counter_table(rungs, "coalesced", "copy on A100").replace("<br>", "<br/>")
    rows = ET.fromstring(html).iter("tr")
    return {" ".join(row[0].itertext()): row for row in rows}


def texts(row):
    return [" ".join(" ".join(cell.itertext()).split()) for cell in row[1:]]


def test_times_come_first_with_range_and_speedup(cells):
    assert list(cells)[1] == "time modeled, with its range"
    assert texts(cells["time modeled, with its range"]) == ["80 µs 72 to 88 µs", "20 µs 18 to 22 µs 4.0 times faster"]


def test_plain_names_come_first_and_changes_are_against_the_first_rung(cells):
    assert texts(cells[f"sectors per load request {RATIO} (emulated)"]) == ["32", "4 1/8"]
    assert texts(cells[f"load sectors {LOADS} (emulated)"]) == ["1,048,576", "131,072 1/8"]


def test_rows_without_a_value_are_left_out(cells):
    assert not any("conflicts" in name for name in cells)
    assert len(cells) == 4


def test_the_chosen_rung_is_marked_in_every_row(cells):
    for row in cells.values():
        assert [cell.get("class") for cell in row[1:]] == [None, "chosen"]


def test_every_row_is_a_metric_that_exists():
    assert [row.name for row in ROWS if row.name not in METRICS] == []
