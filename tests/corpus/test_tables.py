"""Dynamic programming: alignments, subsequences, edit distances, shortest paths."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def edit_distance_python(a, b, out):
    """One block; each thread has a row of the table and runs behind the one above it."""
    table = cuda.shared.array((40, 40), numba.int32)
    t = cuda.threadIdx.x
    for step in range(a.size + b.size + 1):
        j = step - t
        if t <= a.size and 0 <= j <= b.size:
            if t == 0 or j == 0:
                table[t, j] = max(t, j)
            else:
                different = 0 if a[t - 1] == b[j - 1] else 1
                table[t, j] = min(table[t - 1, j - 1] + different, table[t - 1, j] + 1, table[t, j - 1] + 1)
        cuda.syncthreads()
    if t == 0:
        out[0] = table[a.size, b.size]


@cuda.jit
def shortest_paths_python(distance):
    """All rounds in one block, whatever its shape."""
    n = distance.shape[0]
    for k in range(n):
        for i in range(cuda.threadIdx.y, n, cuda.blockDim.y):
            for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                distance[i, j] = min(distance[i, j], distance[i, k] + distance[k, j])
        cuda.syncthreads()


def text_of(random: np.random.Generator, length: int) -> str:
    return "".join(random.choice(list("ACGT"), length))


def as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.int8)


def local_score(a: str, b: str) -> int:
    scores = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            match = scores[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2)
            scores[i, j] = max(0, match, scores[i - 1, j] - 4, scores[i, j - 1] - 4)
    return int(scores.max())


def subsequence(a: str, b: str) -> int:
    @functools.cache
    def longest(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return 0
        if a[i - 1] == b[j - 1]:
            return longest(i - 1, j - 1) + 1
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(a), len(b))


def edits(a: str, b: str) -> int:
    @functools.cache
    def least(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return max(i, j)
        return min(least(i - 1, j) + 1, least(i, j - 1) + 1, least(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return least(len(a), len(b))


@pytest.mark.parametrize(("na", "nb", "block"), [(30, 45, 32), (7, 5, 3), (40, 20, 64)])
def test_global_alignment(run: Runner, random: np.random.Generator, na: int, nb: int, block: int) -> None:
    a, b = text_of(random, na), text_of(random, nb)
    table = np.zeros((na + 1, nb + 1), np.int32)
    run(kernel("tables.cu", "align_global")[1, block], as_bytes(a), na, as_bytes(b), nb, 2, table)

    @functools.cache
    def score(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return -2 * (i + j)
        match = score(i - 1, j - 1) + (2 if a[i - 1] == b[j - 1] else -1)
        return max(match, score(i - 1, j) - 2, score(i, j - 1) - 2)

    assert [[score(i, j) for j in range(nb + 1)] for i in range(na + 1)] == table.tolist()


def test_local_alignment(run: Runner, random: np.random.Generator) -> None:
    query = text_of(random, 21)
    texts = [text_of(random, length) for length in (40, 1, 33)]
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    best = np.zeros(3, np.int32)
    bound = kernel("tables.cu", "align_local")[3, 20, 0, 12 * 22]
    run(bound, as_bytes(query), 21, as_bytes("".join(texts)), starts, best)
    assert best.tolist() == [local_score(query, text) for text in texts]


def test_longest_common_subsequence(run: Runner, random: np.random.Generator) -> None:
    texts = [text_of(random, length) for length in (*range(1, 25), 64, 63, 33, 32, 31)]
    other = text_of(random, 30)
    starts, lengths = np.cumsum([0, *map(len, texts)]).astype(np.int32), np.zeros(len(texts), np.int32)
    bound = kernel("tables.cu", "common_subsequence")[2, 16]
    run(bound, as_bytes("".join(texts)), starts, as_bytes(other), len(other), lengths, len(texts))
    assert lengths.tolist() == [subsequence(text, other) for text in texts]


def test_edit_distances(run: Runner, random: np.random.Generator) -> None:
    words = [text_of(random, length) for length in random.integers(1, 17, 9)]
    packed = np.array([word.encode().ljust(16, b"\0") for word in words], "S16").view(np.int8)
    distances = np.zeros((9, 9), np.uint8)
    run(kernel("tables.cu", "edit_distances")[(2, 2), (5, 6)], packed, 16, 9, distances)
    assert distances.tolist() == [[edits(a, b) for b in words] for a in words]


def distances_of(random: np.random.Generator, n: int) -> np.ndarray:
    distance = np.where(random.random((n, n)) < 0.25, random.integers(1, 50, (n, n)), np.inf).astype(np.float32)
    np.fill_diagonal(distance, 0)
    return distance


def shortest(distance: np.ndarray) -> np.ndarray:
    """Doubling the number of hops until nothing changes."""
    while True:
        nearer = np.min(distance[:, :, None] + distance[None], axis=1)
        if (nearer == distance).all():
            return distance
        distance = nearer


def test_shortest_paths(run: Runner, random: np.random.Generator) -> None:
    n = 19
    distance, via = distances_of(random, n), np.full((n, n), -1, np.int32)
    given = distance.copy()
    one_round = kernel("tables.cu", "shortest_round")
    for k in range(n):
        run(one_round[(2, 5), (12, 4)], distance, via, n, k)
    assert (distance == shortest(given)).all()
    through = np.argwhere(via >= 0)
    assert len(through) and all(distance[i, j] == distance[i, via[i, j]] + distance[via[i, j], j] for i, j in through)


def test_shortest_paths_in_python(run: Runner, random: np.random.Generator) -> None:
    distance = distances_of(random, 12)
    wanted = shortest(distance.copy())
    run(shortest_paths_python[1, (6, 5)], distance)
    assert (distance == wanted).all()


def test_edit_distance_in_python(run: Runner, random: np.random.Generator) -> None:
    a, b = text_of(random, 17), text_of(random, 25)
    out = np.zeros(1, np.int32)
    run(edit_distance_python[1, 40], as_bytes(a), as_bytes(b), out)
    assert out[0] == edits(a, b)
