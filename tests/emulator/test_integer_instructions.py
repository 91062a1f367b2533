"""Integer instructions on every engine: wrapping, signs, shifts behind the end, division by zero, carries."""

from __future__ import annotations

import pytest
from instruction_suite import check
from integer_cases import ARITHMETIC, BITS, CARRY
from ptx_harness import ENGINE_NAMES

TABLES = {"arithmetic": ARITHMETIC, "bits": BITS, "carry": CARRY}
CASES = [(table, index) for table, cases in TABLES.items() for index in range(len(cases))]


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize(("table", "index"), CASES, ids=[f"{t}: {TABLES[t][i].name}" for t, i in CASES])
def test_instruction_gives_its_hand_worked_values(engine: str, table: str, index: int) -> None:
    check(engine, TABLES[table], index)
