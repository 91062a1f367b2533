"""What CUDA's own headers compile to gives the right values: CUB, libcu++'s atomics, halves and 8-bit floats."""

from __future__ import annotations

import numpy as np

import gpulab

_random = np.random.default_rng(3)

CUB = """
#include <cub/cub.cuh>
extern "C" __global__ void work(int* keys, int* sums, float* most, unsigned* bins) {
    using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, 64, 4>;
    using Scan = cub::BlockScan<int, 64>;
    using Most = cub::BlockReduce<float, 64>;
    using Bins = cub::BlockHistogram<unsigned char, 64, 4, 16>;
    __shared__ union { Load::TempStorage load; Sort::TempStorage sort; Scan::TempStorage scan; Most::TempStorage most; Bins::TempStorage bins; } shared;
    __shared__ unsigned counts[16];
    int mine[4], totals[4]; unsigned char digits[4];
    Load(shared.load).Load(keys, mine); __syncthreads();
    for (int i = 0; i < 4; i++) digits[i] = mine[i] & 15;
    Bins(shared.bins).Histogram(digits, counts); __syncthreads();
    if (threadIdx.x < 16) bins[threadIdx.x] = counts[threadIdx.x];
    float largest = Most(shared.most).Reduce(fabsf((float)mine[0]), cuda::maximum<float>{}); __syncthreads();
    Sort(shared.sort).Sort(mine); __syncthreads();
    Scan(shared.scan).InclusiveSum(mine, totals);
    for (int i = 0; i < 4; i++) { keys[4 * threadIdx.x + i] = mine[i]; sums[4 * threadIdx.x + i] = totals[i]; }
    if (threadIdx.x == 0) most[0] = largest;
}
"""

ATOMICS = """
#include <cuda/atomic>
template <class T> __device__ void each(T* cells, T value) {
    using namespace cuda::std;
    cuda::atomic_ref<T, cuda::thread_scope_device>(cells[0]).fetch_add(value, memory_order_relaxed);
    cuda::atomic_ref<T, cuda::thread_scope_block>(cells[1]).fetch_max(value, memory_order_acq_rel);
    cuda::atomic_ref<T, cuda::thread_scope_system>(cells[2]).fetch_min(value);
    T seen = cells[3];
    while (!cuda::atomic_ref<T>(cells[3]).compare_exchange_weak(seen, seen + value, memory_order_release)) {}
    cuda::atomic_thread_fence(memory_order_seq_cst, cuda::thread_scope_block);
}
extern "C" __global__ void work(signed char* bytes, short* shorts, long long* longs, float* floats, double* doubles) {
    int value = 3 * (int)threadIdx.x % 32 - 16;
    each(bytes, (signed char)(value / 8)); each(shorts, (short)value); each(longs, (long long)value);
    each(floats, value / 4.0f); each(doubles, value / 4.0);
}
"""

HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
extern "C" __global__ void work(float* x, __half* h, __nv_bfloat16* b, unsigned char* codes, float* back, __half* total, __nv_bfloat162* pairs) {
    int i = threadIdx.x;
    h[i] = __hfma_relu(__float2half_rn(x[i]), __float2half_rz(2.0f), __float2half(1.0f));
    b[i] = __float2bfloat16_ru(x[i]);
    __nv_fp8_e4m3 small(x[i]); codes[i] = small.__x; back[i] = float(small);
    atomicAdd(total, __float2half(0.5f)); atomicAdd(pairs, __floats2bfloat162_rn(1.0f, -2.0f));
}
"""


def test_cub_sorts_scans_reduces_and_counts() -> None:
    keys = _random.integers(-(2**31), 2**31, 256).astype(np.int32)
    given, sums, most, bins = keys.copy(), np.zeros(256, np.int32), np.zeros(1, np.float32), np.zeros(16, np.uint32)
    gpulab.RawKernel(CUB, "work")[1, 64](keys, sums, most, bins)
    assert np.array_equal(keys, np.sort(given))
    assert np.array_equal(sums, np.cumsum(np.sort(given), dtype=np.int32))
    assert most[0] == np.abs(given[::4].astype(np.float32)).max()
    assert np.array_equal(bins, np.bincount(given & 15, minlength=16))


def test_atomics_of_libcudacxx_in_every_width() -> None:
    values = 3 * np.arange(64) % 32 - 16
    kinds = [np.int8, np.int16, np.int64, np.float32, np.float64]
    cells = [np.zeros(4, kind) for kind in kinds]
    gpulab.RawKernel(ATOMICS, "work")[1, 64](*cells)
    scaled = [np.trunc(values / 8), values, values, values / 4, values / 4]
    for cell, each in zip(cells, scaled, strict=True):
        assert cell.tolist() == [each.sum(), each.max(), each.min(), each.sum()], cell.dtype


def test_halves_and_eight_bit_floats() -> None:
    x = np.concatenate([_random.normal(size=60) * 100, [1e6, -1e6, 2.0**-9, 0.0]]).astype(np.float32)
    h, b, total, pairs = (
        np.zeros(64, np.float16),
        np.zeros(64, np.uint16),
        np.zeros(1, np.float16),
        np.zeros(2, np.uint16),
    )
    codes, back = np.zeros(64, np.uint8), np.zeros(64, np.float32)
    kernel = gpulab.RawKernel(HALVES, "work")
    with np.errstate(over="ignore"):
        kernel[1, 64](x, h, b.view(np.uint16), codes, back, total, pairs)
        halves = x.astype(np.float16).astype(np.float64) * 2 + 1
        assert np.array_equal(h, np.where(halves < 0, 0, halves).astype(np.float16))
    up = (b.astype(np.uint32) << 16).view(np.float32)
    below = ((b.astype(np.int64) + np.where(x < 0, 1, -1)).astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert (up >= x).all() and ((below < x) | (x == 0)).all()
    # e4m3 keeps three fraction bits, and nothing above 448.
    inside = np.clip(x, -448, 448)
    assert (np.abs(back - inside) <= np.maximum(np.abs(inside) / 16, 2.0**-10)).all()
    assert codes[60:].tolist() == [0x7E, 0xFE, 0x01, 0x00]
    assert total[0] == 32.0
    assert (pairs.astype(np.uint32) << 16).view(np.float32).tolist() == [64.0, -128.0]
