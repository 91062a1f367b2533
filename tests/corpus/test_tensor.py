"""Products on tensor cores."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import Runner, kernel


def halves(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers and halves, so that every sum is exact in any order."""
    return (random.integers(-8, 9, shape) / 2).astype(np.float16)


def test_product_of_tiles(run: Runner, random: np.random.Generator) -> None:
    A, B, C = halves(random, 32, 48), halves(random, 48, 16), halves(random, 32, 16).astype(np.float32)
    wanted = (A.astype(np.float32) @ B.astype(np.float32) + C) / 2
    run(kernel("tensor.cu", "product_wmma")[1, 96], A, B, C, 32, 16, 48)
    assert (C == wanted).all()


def test_product_of_bytes(run: Runner, random: np.random.Generator) -> None:
    A, B = random.integers(-128, 128, (2, 16, 16)).astype(np.int8)
    C = np.zeros((16, 16), np.int32)
    run(kernel("tensor.cu", "product_bytes")[1, 32], A, B, C)
    assert (C == A.astype(np.int32) @ B.T.astype(np.int32) + 1000).all()


@pytest.mark.parametrize("name", ["product_mma", "product_ldmatrix"])
def test_product_by_instructions(run: Runner, random: np.random.Generator, name: str) -> None:
    A, B, C = halves(random, 16, 16), halves(random, 16, 8), np.zeros((16, 8), np.float32)
    run(kernel("tensor.cu", name)[1, 32], A, B, C)
    assert (C == A.astype(np.float32) @ B.astype(np.float32)).all()
