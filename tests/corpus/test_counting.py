"""Histograms, stream compaction and run-length encoding."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def histogram_python(data, bins):
    counts = cuda.shared.array(64, numba.int32)
    if cuda.threadIdx.x < 64:
        counts[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, data[i] & 63, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 64:
        cuda.atomic.add(bins, cuda.threadIdx.x, counts[cuda.threadIdx.x])


@cuda.jit
def compact_python(data, limit, out, kept):
    i = cuda.grid(1)
    keep = i < data.size and data[i] > limit
    votes = cuda.ballot_sync(0xFFFFFFFF, keep)
    start = 0
    if cuda.laneid == 0:
        start = cuda.atomic.add(kept, 0, cuda.popc(votes))
    start = cuda.shfl_sync(0xFFFFFFFF, start, 0)
    if keep:
        out[start + cuda.popc(votes & ((1 << cuda.laneid) - 1))] = data[i]


@pytest.mark.parametrize(("n", "bins", "grid", "block"), [(1001, 37, 2, 64), (130, 256, 1, (13, 1)), (4096, 5, 3, 96)])
def test_histogram_with_shared_atomics(
    run: Runner, random: np.random.Generator, n: int, bins: int, grid: int, block: object
) -> None:
    data, counted = random.integers(0, 256, n, np.uint8), np.zeros(bins, np.uint32)
    run(kernel("counting.cu", "histogram_shared")[grid, block, 0, 4 * bins], data, n, counted, bins)
    assert (counted == np.bincount(data.astype(int) % bins, minlength=bins)).all()


def test_histogram_with_private_counters(run: Runner, random: np.random.Generator) -> None:
    words, counted = random.integers(0, 2**32, 2500, np.uint32), np.zeros(16, np.uint32)
    run(kernel("counting.cu", "histogram_privatized")[2, 64], words, words.size, counted)
    nibbles = (words[:, None] >> np.arange(0, 32, 4, dtype=np.uint32)) & 15
    assert (counted == np.bincount(nibbles.ravel(), minlength=16)).all()


def test_histogram_in_python(run: Runner, random: np.random.Generator) -> None:
    data, counted = random.integers(0, 1000, 777).astype(np.int32), np.zeros(64, np.int32)
    run(histogram_python[2, 96], data, counted)
    assert (counted == np.bincount(data & 63, minlength=64)).all()


@pytest.mark.parametrize("language", ["cuda", "numba"])
def test_compaction(run: Runner, random: np.random.Generator, language: str) -> None:
    data = random.integers(-50, 50, 413).astype(np.int32)
    out, kept = np.full(500, -99, np.int32), np.zeros(1, np.int32)
    if language == "cuda":
        run(kernel("counting.cu", "compact")[4, 128], data, data.size, 7, out, kept)
    else:
        run(compact_python[4, 128], data, 7, out, kept)
    wanted = data[data > 7]
    assert kept[0] == wanted.size
    assert (np.sort(out[: kept[0]]) == np.sort(wanted)).all()
    assert (out[kept[0] :] == -99).all()


@pytest.mark.parametrize(("n", "block"), [(1, 32), (200, 64), (301, 80), (64, 64)])
def test_run_lengths(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    text = np.frombuffer(bytes(random.choice([97, 97, 97, 98], n).astype(np.uint8)), np.int8)
    values, lengths, runs = np.zeros(n, np.int8), np.zeros(n, np.int32), np.zeros(1, np.int32)
    run(kernel("counting.cu", "run_lengths")[1, block], text, n, values, lengths, runs)
    wanted = [(value, len(list(same))) for value, same in itertools.groupby(text.tolist())]
    assert list(zip(values.tolist(), lengths.tolist(), strict=True))[: runs[0]] == wanted
