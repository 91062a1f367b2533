"""Counters against values that others measured with Nsight Compute or that NVIDIA documents, compared exactly.

The table is in ``benchmarks/validation/counters.py``: kernels, launches, values and their sources.
"""

from __future__ import annotations

import pytest
from validation.counters import expectations
from validation.counters_part import counters_part, found
from validation.pages import PAGE, part_of
from validation.records import Expectation


@pytest.mark.parametrize("row", [row for row in expectations() if not row.compiler], ids=lambda row: row.title)
def test_counts_are_equal(row: Expectation) -> None:
    ours, is_right = found(row)
    assert is_right, "the kernel's results are wrong"
    differing = {
        count.metric: (value, count.value)
        for count, value in zip(row.counts, ours, strict=True)
        if not count.agrees(value)
    }
    # A known difference that is gone must leave the table.
    assert bool(differing) is bool(row.known), f"ours, expected: {differing}"


def test_the_page_shows_the_counts_of_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert part_of(page, "counters") == counters_part(), "run benchmarks/validate.py --only counters"
