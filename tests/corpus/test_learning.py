"""Clusters, neighbors, softmax, layer norms, half precision, reductions."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def assign_python(points, centers, label, sums, counts):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, where = math.inf, 0
        for c in range(centers.shape[0]):
            distance = 0.0
            for d in range(centers.shape[1]):
                distance += (points[i, d] - centers[c, d]) ** 2
            if distance < best:
                best, where = distance, c
        label[i] = where
        cuda.atomic.add(counts, where, 1)
        for d in range(centers.shape[1]):
            cuda.atomic.add(sums, (where, d), points[i, d])


@cuda.jit
def softmax_python(x, out):
    """A block a row."""
    work = cuda.shared.array(64, numba.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    top = numba.float32(-math.inf)
    for i in range(t, x.shape[1], 64):
        top = max(top, x[row, i])
    work[t] = top
    cuda.syncthreads()
    step = 32
    while step:
        if t < step:
            work[t] = max(work[t], work[t + step])
        cuda.syncthreads()
        step //= 2
    top = work[0]
    cuda.syncthreads()
    total = numba.float32(0)
    for i in range(t, x.shape[1], 64):
        out[row, i] = math.exp(x[row, i] - top)
        total += out[row, i]
    work[t] = total
    cuda.syncthreads()
    step = 32
    while step:
        if t < step:
            work[t] += work[t + step]
        cuda.syncthreads()
        step //= 2
    for i in range(t, x.shape[1], 64):
        out[row, i] /= work[0]


@cuda.jit
def sum_python(x, total):
    value = numba.float64(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value += x[i]
    step = 16
    while step > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step >>= 1
    if cuda.laneid == 0:
        cuda.atomic.add(total, 0, value)


@cuda.jit
def gemv_half_python(A, x, y):
    row = cuda.grid(1)
    if row < A.shape[0]:
        total = np.float16(0)
        for j in range(A.shape[1]):
            total = cuda.fp16.hfma(A[row, j], x[j], total)
        y[row] = total


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def clusters(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, sums and counts; shapes (n,), (k, d), (k,)."""
    label = ((points[:, None] - centers) ** 2).sum(2).argmin(1)
    members = label[None] == np.arange(len(centers))[:, None]
    return label, members @ points, members.sum(1)


def test_clusters(run: Runner, random: np.random.Generator) -> None:
    points, centers = random.random((77, 3)).astype(np.float32), random.random((5, 3)).astype(np.float32)
    label, sums, counts = np.zeros(77, np.int32), np.zeros((5, 3), np.float32), np.zeros(5, np.int32)
    bound = kernel("learning.cu", "assign_points<3>")[2, 48, 0, 4 * 5 * 4]
    run(bound, np.ascontiguousarray(points.T), centers, label, sums, counts, 77, 5)
    wanted_label, wanted_sums, wanted_counts = clusters(points, centers)
    assert (label == wanted_label).all() and (counts == wanted_counts).all()
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-5)


def test_clusters_in_python(run: Runner, random: np.random.Generator) -> None:
    points, centers = random.random((41, 2)), random.random((4, 2))
    label, sums, counts = np.zeros(41, np.int32), np.zeros((4, 2)), np.zeros(4, np.int32)
    run(assign_python[2, 24], points, centers, label, sums, counts)
    wanted_label, wanted_sums, wanted_counts = clusters(points, centers)
    assert (label == wanted_label).all() and (counts == wanted_counts).all()
    np.testing.assert_allclose(sums, wanted_sums, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 4])
def test_neighbors(run: Runner, random: np.random.Generator, k: int) -> None:
    points, queries = random.random((50, 2)).astype(np.float32), random.random((19, 2)).astype(np.float32)
    found = np.zeros((19, k), np.int32)
    run(kernel("learning.cu", f"nearest_neighbors<{k}>")[1, 32], points, 50, queries, 19, found)
    distance = ((points[None] - queries[:, None]) ** 2).sum(2)
    assert (found == distance.argsort(1, kind="stable")[:, :k]).all()


@pytest.mark.parametrize(("rows", "width"), [(5, 33), (3, 100), (4, 32)])
def test_softmax(run: Runner, random: np.random.Generator, rows: int, width: int) -> None:
    x = (20 * random.random((rows, width)) - 10).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel("learning.cu", "softmax_online")[-(-rows // 2), 64], x, out, rows, width)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-4, atol=1e-7)


def test_softmax_in_python(run: Runner, random: np.random.Generator) -> None:
    x = (20 * random.random((3, 150)) - 10).astype(np.float32)
    out = np.zeros_like(x)
    run(softmax_python[3, 64], x, out)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("width", [100, 64, 7])
def test_layer_norm(run: Runner, random: np.random.Generator, width: int) -> None:
    x, gain = (100 + random.random((3, width))).astype(np.float32), random.random(width).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel("learning.cu", "layer_norm")[3, 64], x, gain, out, width, 1e-3)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-3) * gain
    np.testing.assert_allclose(out, wanted, rtol=1e-3, atol=1e-4)


def test_half_precision(run: Runner, random: np.random.Generator) -> None:
    A, x = random.random((11, 90)).astype(np.float16), random.random(90).astype(np.float16)
    y = np.zeros(11, np.float16)
    run(kernel("half.cu", "gemv_half")[3, (32, 4)], A, x, y, 11, 45)
    wanted = (A * x).astype(np.float64).sum(1)  # NumPy rounds each product to half precision too
    np.testing.assert_allclose(y, wanted, rtol=6e-4)


def test_half_precision_in_python(run: Runner, random: np.random.Generator) -> None:
    A, x = random.random((20, 9)).astype(np.float16), random.random(9).astype(np.float16)
    y, wanted = np.zeros(20, np.float16), np.zeros(20, np.float16)
    run(gemv_half_python[1, 32], A, x, y)
    for j in range(9):  # exact in double precision, then rounded once
        wanted = (A[:, j].astype(np.float64) * x[j] + wanted).astype(np.float16)
    assert (y == wanted).all()


def rounded(x: np.ndarray) -> np.ndarray:
    """To bfloat16 precision, ties to even; shape and dtype float64 kept (no infinities, no tiny values here)."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 256), exponent - 8)


def test_bfloat(run: Runner, random: np.random.Generator) -> None:
    x, gate = rounded(random.random(70) * 4 - 2), (random.random(70) * 2).astype(np.float32)
    packed = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    out = np.zeros(70, np.uint16)
    run(kernel("half.cu", "gate_bfloat")[1, 96], packed, gate, out, 70)
    g = rounded(gate.astype(np.float64))
    value = rounded(x * g + 0.5)
    wanted = np.where(value > 1, rounded(value - g), rounded(value * value))
    assert ((out.astype(np.uint32) << 16).view(np.float32) == wanted).all()


def test_sum_by_groups(run: Runner, random: np.random.Generator) -> None:
    x, total = random.integers(-(2**31), 2**31, 502).astype(np.int32), np.zeros(1, np.int64)
    run(kernel("groups.cu", "sum_groups")[2, 96], x, 251, total)
    assert total[0] == x.sum(dtype=np.int64)


def test_sum_in_python(run: Runner, random: np.random.Generator) -> None:
    x, total = random.random(777), np.zeros(1)
    run(sum_python[3, 64], x, total)
    np.testing.assert_allclose(total[0], x.sum(), rtol=1e-13)
