"""The engines agree on random kernels, results and every counter."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_harness import ENGINE_NAMES
from random_kernels import differences, random_kernel, run_random_kernel

BLOCKS = [(32, 1), (40, 1), (64, 1), (16, 4), (8, 8), (5, 7), (1, 33), (32, 3), (96, 1)]


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(st.randoms(use_true_random=False), st.sampled_from(BLOCKS), st.integers(1, 3))
def test_engines_agree_on_random_kernels(choose: random.Random, block: tuple[int, int], grid: int) -> None:
    text = random_kernel(choose)
    outcomes = [run_random_kernel(engine, text, grid, block) for engine in ENGINE_NAMES]
    found = differences(*outcomes)
    assert not found, f"{found}\ngrid {grid}, block {block}\n{text}"


def test_random_kernels_are_varied() -> None:
    """Together they hold what the comparison is for; a generator that stopped making loops would go unnoticed."""
    text = "".join(random_kernel(random.Random(seed)) for seed in range(40))
    for word in ("HEAD", "ELSE", "bar.sync", "bar.red", "shfl.sync", "vote.sync", "match.any", "red.global", "bra DONE", "st.local",
                 "ld.global", "fma.rn", "@!%p1", "mul.wide"):  # fmt: skip
        assert word in text
