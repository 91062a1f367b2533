"""What the linter knows: unused names, mutable defaults, missing annotations and the like (rules in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_linter_finds_nothing() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
