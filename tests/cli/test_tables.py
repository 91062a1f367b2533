"""Tables for the terminal."""

from __future__ import annotations

from gpulab.cli import tables
from gpulab.profiling.table import Table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    table = Table("Times", ("rung", "time"), (("naive", "12 us"), ("tile", "3.45 us")), ("modeled",), right=(1,))
    assert tables.fitted(table).splitlines() == [
        "Times",
        "rung      time",
        "-----  -------",
        "naive    12 us",
        "tile   3.45 us",
        "modeled",
    ]


def test_a_wide_table_wraps_its_texts_and_keeps_its_numbers_whole() -> None:
    rows = (("naive", "word " * 20, "1,234,567", "short"), ("best", "x", "2", "other " * 12))
    lines = tables.fitted(Table("", ("rung", "why", "count", "more"), rows, right=(2,))).splitlines()
    assert max(map(len, lines)) <= tables.WIDTH
    text = " ".join(" ".join(lines).split())
    assert text.count("word") == 20
    assert text.count("other") == 12
    assert "1,234,567" in text
    assert len(lines) > 4


def test_words_of_a_number_column_break_before_its_numbers() -> None:
    rows = (("x" * 12, "3.15 to 5.79 us", "no clear difference", "1" * 53),)
    lines = tables.fitted(Table("", ("rung", "range", "speed-up", "count"), rows, right=(1, 2, 3))).splitlines()
    assert "3.15 to 5.79 us" in lines[2]
    assert "no clear" in lines[2]
    assert "difference" in lines[3]


def test_lines_below_a_row_and_notes_wrap_and_indent() -> None:
    rows = (("time", "advice " * 20), ("lanes", ""))
    lines = tables.fitted(Table("", ("name", "remedy"), rows, ("note " * 30,), below=1)).splitlines()
    assert lines[:4] == ["name", "-----", "time", "    " + ("advice " * 13).rstrip()]
    assert lines[5] == "lanes"
    assert lines[6].startswith("note note")
    assert max(map(len, lines)) <= tables.WIDTH


def test_pairs_align_and_wrap() -> None:
    lines = tables.pairs([("a", "word " * 30), ("longer", "x")], indent="  ").splitlines()
    assert lines[0].startswith("  a       word")
    assert lines[1].startswith("          word")
    assert lines[-1] == "  longer  x"
    assert max(map(len, lines)) <= tables.WIDTH


def test_source_lines_are_cut_not_wrapped() -> None:
    table = tables.cut(Table("", ("line", "source"), (("a.cu:7", "x" * 200), ("a.cu:8", "short"))))
    lines = tables.fitted(table).splitlines()
    assert lines[2] == f"a.cu:7  {'x' * 90}.."
    assert lines[3] == "a.cu:8  short"
