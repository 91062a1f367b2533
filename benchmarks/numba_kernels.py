"""The kernels of the speed benchmark in Numba; see kernels.cu."""

from __future__ import annotations

import math

import numpy as np

from gpulab import cuda


@cuda.jit
def sgemm(a, b, c, n):
    column, row = cuda.grid(2)
    if row < n and column < n:
        total = np.float32(0)
        for k in range(n):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@cuda.jit
def sgemm_columns(a, b, c, n):
    row, column = cuda.grid(2)
    if row < n and column < n:
        total = np.float32(0)
        for k in range(n):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def _tiled(tile):
    @cuda.jit
    def sgemm_tiled(a, b, c, n):
        a_tile = cuda.shared.array((tile, tile), np.float32)
        b_tile = cuda.shared.array((tile, tile), np.float32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = np.float32(0)
        for start in range(0, n, tile):
            a_tile[y, x] = a[row, start + x]
            b_tile[y, x] = b[start + y, column]
            cuda.syncthreads()
            for k in range(tile):
                total += a_tile[y, k] * b_tile[k, x]
            cuda.syncthreads()
        c[row, column] = total

    return sgemm_tiled


sgemm_tiled16, sgemm_tiled32 = _tiled(16), _tiled(32)


def _transpose(tile, rows):
    padded = tile + 1

    @cuda.jit
    def transpose(source, out, n):
        kept = cuda.shared.array((tile, padded), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * tile + tx
        y = cuda.blockIdx.y * tile + ty
        for i in range(0, tile, rows):
            kept[ty + i, tx] = source[y + i, x]
        cuda.syncthreads()
        x = cuda.blockIdx.y * tile + tx
        y = cuda.blockIdx.x * tile + ty
        for i in range(0, tile, rows):
            out[y + i, x] = kept[tx, ty + i]

    return transpose


transpose16, transpose32 = _transpose(16, 16), _transpose(32, 8)


@cuda.jit
def reduction(x, out, n):
    sums = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += x[i]
    sums[t] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            sums[t] += sums[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = sums[0]


@cuda.jit
def vector_add(x, y, z, n):
    i = cuda.grid(1)
    if i < n:
        z[i] = x[i] + y[i]


@cuda.jit
def collatz(steps, n):
    i = cuda.grid(1)
    if i >= n:
        return
    value = i + 1
    count = 0
    while value != 1:
        if value % 2:
            value = 3 * value + 1
        else:
            value //= 2
        count += 1
    steps[i] = count


@cuda.jit
def softmax(source, out, columns):
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    most = np.float32(-np.inf)
    for i in range(t, columns, cuda.blockDim.x):
        most = max(most, source[row, i])
    shared[t] = most
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            shared[t] = max(shared[t], shared[t + half])
        cuda.syncthreads()
        half //= 2
    most = shared[0]
    cuda.syncthreads()
    total = np.float32(0)
    for i in range(t, columns, cuda.blockDim.x):
        total += math.exp(source[row, i] - most)
    shared[t] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    total = shared[0]
    for i in range(t, columns, cuda.blockDim.x):
        out[row, i] = math.exp(source[row, i] - most) / total
