"""The page that lists the emulator's instructions says what the table says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_table() -> None:
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "refresh_instruction_table.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/refresh_instruction_table.py"
