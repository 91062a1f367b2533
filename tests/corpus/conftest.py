"""Makes the helper module beside the tests importable (pytest's importlib mode does not), and runs kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gpulab

sys.path.insert(0, str(Path(__file__).parent))

from corpus import Runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Runs launches: ``run(kernel[grid, block], x, y)``."""
    gpulab.use()
    return Runner(monkeypatch)


@pytest.fixture
def random() -> np.random.Generator:
    """Random numbers, the same in each test whatever ran before."""
    return np.random.default_rng(7)
