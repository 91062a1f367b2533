"""Every instruction on every engine: one line in a table, values worked by hand, inputs that bite."""

from __future__ import annotations

import pytest
from compare_cases import COMPARE, CONVERT, MOVE
from float_cases import F32, F64, HALF
from instruction_suite import check
from integer_cases import ARITHMETIC, BITS, CARRY
from packed_cases import EIGHT_BITS, PACKED
from ptx_harness import ENGINE_NAMES

TABLES = {
    "arithmetic": ARITHMETIC,
    "bits": BITS,
    "carry": CARRY,
    "f32": F32,
    "f64": F64,
    "half": HALF,
    "compare": COMPARE,
    "convert": CONVERT,
    "move": MOVE,
    "packed": PACKED,
    "eight bits": EIGHT_BITS,
}
CASES = [(table, index) for table, cases in TABLES.items() for index in range(len(cases))]


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize(("table", "index"), CASES, ids=[f"{t}: {TABLES[t][i].name}" for t, i in CASES])
def test_instruction_gives_its_hand_worked_values(engine: str, table: str, index: int) -> None:
    check(engine, TABLES[table], index)
