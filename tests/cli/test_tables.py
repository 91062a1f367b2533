"""Numbers and tables for the terminal."""

from __future__ import annotations

import pytest

from gpulab.cli import tables


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert tables.table(("rung", "time"), [("naive", "12 us"), ("tile", "3.45 us")]).splitlines() == [
        "rung      time",
        "-----  -------",
        "naive    12 us",
        "tile   3.45 us",
    ]


def test_left_columns_have_no_trailing_blanks() -> None:
    assert tables.table(("a", "why"), [("1", "x"), ("2", "long")], left=(0, 1)).splitlines()[2] == "1  x"


def test_pairs_align_and_wrap() -> None:
    lines = tables.pairs([("a", "word " * 30), ("longer", "x")], indent="  ").splitlines()
    assert lines[0].startswith("  a       word")
    assert lines[1].startswith("          word")
    assert lines[-1] == "  longer  x"
    assert max(map(len, lines)) <= tables.WIDTH


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.0, "0 ns"), (4.2e-8, "42.0 ns"), (9.994e-7, "999 ns"), (9.996e-7, "1.00 us"), (1.234e-4, "123 us"),
        (4.5678e-3, "4.57 ms"), (0.9996, "1.00 s"), (12.34, "12.3 s"), (1234.0, "1230 s"),
    ],
)  # fmt: skip
def test_times_have_three_digits_and_the_fitting_unit(value: float | None, text: str) -> None:
    assert tables.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0, "0"), (1234567, "1,234,567"), (4.0, "4"), (0.98765, "0.988"), (31.25, "31.2")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert tables.number(value) == text
