"""Products, transposes and factorizations of dense matrices."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def gemm_python(A, B, C):
    """Tiles of 8 x 8; any shape."""
    a = cuda.shared.array((8, 8), numba.float32)
    b = cuda.shared.array((8, 8), numba.float32)
    row, column = cuda.grid(2)
    ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
    total = numba.float32(0)
    for p in range(0, A.shape[1], 8):
        a[ty, tx] = A[row, p + tx] if row < A.shape[0] and p + tx < A.shape[1] else 0
        b[ty, tx] = B[p + ty, column] if p + ty < B.shape[0] and column < B.shape[1] else 0
        cuda.syncthreads()
        for q in range(8):
            total += a[ty, q] * b[q, tx]
        cuda.syncthreads()
    if row < C.shape[0] and column < C.shape[1]:
        C[row, column] = total


@cuda.jit
def triangular_solve_python(L, b):
    """L x = b in one block: x replaces b."""
    t = cuda.threadIdx.x
    for k in range(b.size):
        if t == 0:
            b[k] /= L[k, k]
        cuda.syncthreads()
        for i in range(k + 1 + t, b.size, cuda.blockDim.x):
            b[i] -= L[i, k] * b[k]
        cuda.syncthreads()


def test_product_blocked_in_registers(run: Runner, random: np.random.Generator) -> None:
    A, B = random.random((64, 24)).astype(np.float32), random.random((24, 128)).astype(np.float32)
    C = np.zeros((64, 128), np.float32)
    run(kernel("matrices.cu", "gemm_registers")[(2, 1), 128], A, B, C, 128, 24)
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "name", "tile"),
    [
        (np.float64, "gemm_tiled<double, 8>", 8),
        (np.int32, "gemm_tiled<int, 6>", 6),
    ],
)
def test_product_of_any_type(run: Runner, random: np.random.Generator, dtype: type, name: str, tile: int) -> None:
    m, n, k = 19, 35, 27
    A, B = random.integers(-9, 9, (m, k)).astype(dtype), random.integers(-9, 9, (k, n)).astype(dtype)
    C = np.zeros((m, n), dtype)
    run(kernel("matrices.cu", name)[(-(-n // tile), -(-m // tile)), (tile, tile)], A, B, C, m, n, k)
    assert (C == A @ B).all()


@pytest.mark.parametrize("rows_per_step", [4, 7])
def test_transposes(run: Runner, random: np.random.Generator, rows_per_step: int) -> None:
    x = random.random((2, 37, 41))
    out = np.zeros((2, 41, 37))
    run(kernel("matrices.cu", "transpose_batch")[(2, 2, 2), (32, rows_per_step)], x, out, 37, 41)
    assert (out == x.transpose(0, 2, 1)).all()


@pytest.mark.parametrize(("n", "block"), [(9, 32), (23, 70)])
def test_lu(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    A = (random.random((n, n)) - 0.5).astype(np.float32)
    factors, pivots = A.copy(), np.zeros(n, np.int32)
    run(kernel("matrices.cu", "lu_pivoting")[1, block], factors, pivots, n)
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    assert np.abs(lower).max() <= 1
    for k, pivot in enumerate(pivots):
        A[[k, pivot]] = A[[pivot, k]]
    np.testing.assert_allclose(lower @ upper, A, atol=1e-5)


@pytest.mark.parametrize(("n", "block"), [(13, 32), (20, 12)])
def test_cholesky(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    root = random.random((n, n))
    A = root @ root.T + np.eye(n)
    out = A.copy()
    run(kernel("matrices.cu", "cholesky")[1, block], out, n)
    np.testing.assert_allclose(np.tril(out), np.linalg.cholesky(A), rtol=1e-10)


def test_gauss_jordan(run: Runner, random: np.random.Generator) -> None:
    n = 7
    systems, found = random.random((3, n, n + 1)) - 0.5, np.zeros((3, n))
    run(kernel("matrices.cu", "gauss_jordan")[3, n + 1, 0, 8 * n * (n + 1)], systems, found, n)
    np.testing.assert_allclose(found, np.linalg.solve(systems[:, :, :n], systems[:, :, n:])[..., 0], rtol=1e-8)


def test_product_in_python(run: Runner, random: np.random.Generator) -> None:
    A, B = random.random((13, 21)).astype(np.float32), random.random((21, 10)).astype(np.float32)
    C = np.zeros((13, 10), np.float32)
    run(gemm_python[(2, 2), (8, 8)], A, B, C)
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)


def test_triangular_solve_in_python(run: Runner, random: np.random.Generator) -> None:
    L, x = np.tril(random.random((20, 20))) + np.eye(20), random.random(20)
    b = L @ x
    run(triangular_solve_python[1, 12], L, b)
    np.testing.assert_allclose(b, x, rtol=1e-10)
