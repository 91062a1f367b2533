"""Makes the helper module beside the tests importable (pytest's importlib mode does not); every test begins on an A100."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gpulab

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _emulated_a100():
    gpulab.use("A100", time_limit_s=30)
