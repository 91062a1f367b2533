"""Makes the helper modules beside the tests importable (pytest's importlib mode does not), and runs tests on each engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ptx_harness import ENGINE_NAMES


@pytest.fixture(params=ENGINE_NAMES)
def engine(request: pytest.FixtureRequest) -> str:
    """Name of an engine; a test that takes it runs on every one."""
    return request.param
