"""Sparse matrices and graphs."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def spmv_python(starts, columns, values, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = 0.0
        for e in range(starts[row], starts[row + 1]):
            total += values[e] * x[columns[e]]
        y[row] = total


@cuda.jit
def search_python(starts, targets, level, changed, depth):
    node = cuda.grid(1)
    if node < level.size and level[node] == depth:
        for e in range(starts[node], starts[node + 1]):
            if cuda.atomic.cas(level, targets[e], -1, depth + 1) == -1:
                changed[0] = 1


@cuda.jit
def relax_python(source, target, weight, distance, changed):
    e = cuda.grid(1)
    if e < source.size and not math.isinf(distance[source[e]]):
        around = distance[source[e]] + weight[e]
        if around < cuda.atomic.min(distance, target[e], around):
            changed[0] = numba.int32(1)


def matrix(random: np.random.Generator, rows: int, columns: int, dtype: type) -> np.ndarray:
    """With empty rows and one full row."""
    dense = np.where(random.random((rows, columns)) < 0.1, random.random((rows, columns)), 0).astype(dtype)
    dense[3] = 1
    dense[5] = 0
    return dense


def compressed(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of the rows, columns, values."""
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    return starts, columns.astype(np.int32), dense[rows, columns]


@pytest.mark.parametrize(("name", "width"), [("spmv_scalar", 1), ("spmv_vector<8>", 8), ("spmv_vector<32>", 32)])
def test_rows_times_vector(run: Runner, random: np.random.Generator, name: str, width: int) -> None:
    dense, x = matrix(random, 37, 50, np.float32), random.random(50).astype(np.float32)
    y = np.full(37, np.nan, np.float32)
    run(kernel("sparse.cu", name)[-(-37 * width // 96), 96], *compressed(dense), x, y, 37)
    np.testing.assert_allclose(y, dense @ x, rtol=1e-5)


def test_padded_rows_times_vector(run: Runner, random: np.random.Generator) -> None:
    dense, x = matrix(random, 20, 12, np.float64), random.random(12)
    columns, values, y = np.full((12, 20), -1, np.int32), np.zeros((12, 20)), np.zeros(20)
    for row in range(20):
        (filled,) = np.nonzero(dense[row])
        columns[: filled.size, row], values[: filled.size, row] = filled, dense[row, filled]
    run(kernel("sparse.cu", "spmv_ell")[1, 33], columns, values, x, y, 20, 12)
    np.testing.assert_allclose(y, dense @ x, rtol=1e-13)


def test_coordinates_times_vector(run: Runner, random: np.random.Generator) -> None:
    dense, x, y = matrix(random, 31, 17, np.float64), random.random(17), np.zeros(31)
    places = random.permutation(np.argwhere(dense)).astype(np.int32, order="C")
    values = dense[places[:, 0], places[:, 1]]
    run(kernel("sparse.cu", "spmv_coordinates")[2, 32], places, values, x, y, len(places))
    np.testing.assert_allclose(y, dense @ x, rtol=1e-13)


def test_page_rank(run: Runner, random: np.random.Generator) -> None:
    n = 45
    links = random.random((n, n)) < 0.1  # links[i, j]: page j links to page i
    links[random.integers(0, n, n), np.arange(n)] = True  # no page without a link
    starts, sources, _ = compressed(links)
    degrees = links.sum(0).astype(np.int32)
    rank = wanted = np.full(n, 1 / n, np.float32)
    for _ in range(3):
        following, change = np.zeros(n, np.float32), np.zeros(1, np.float32)
        run(kernel("sparse.cu", "page_rank")[2, 32], starts, sources, degrees, rank, following, 0.85, n, change)
        before, wanted = wanted, 0.15 / n + 0.85 * (links / degrees) @ wanted
        np.testing.assert_allclose(change[0], np.abs(wanted - before).sum(), rtol=1e-4)
        rank = following
    np.testing.assert_allclose(rank, wanted, rtol=1e-5)


def graph(random: np.random.Generator, n: int, degree: float) -> np.ndarray:
    """Symmetric, shape (n, n), bool."""
    half = np.triu(random.random((n, n)) < degree / n, 1)
    return half | half.T


def levels(links: np.ndarray, start: int) -> np.ndarray:
    """Number of edges from a node to each; -1 where no way leads."""
    level = np.full(len(links), -1)
    level[start], reached, depth = 0, np.arange(len(links)) == start, 0
    while reached.any():
        depth += 1
        reached = links[reached].any(0) & (level < 0)
        level[reached] = depth
    return level


def test_breadth_first_search(run: Runner, random: np.random.Generator) -> None:
    links = graph(random, 60, 2.5)
    starts, targets, _ = compressed(links)
    level, queue, size, depth = np.full(60, -1, np.int32), np.array([4] + [0] * 59, np.int32), 1, 0
    level[4] = 0
    step = kernel("sparse.cu", "search_level")
    while size:
        depth += 1
        following, count = np.zeros(60, np.int32), np.zeros(1, np.int32)
        run(step[-(-size // 16), 16], starts, targets, level, queue, size, following, count, depth)
        queue, size = following, int(count[0])
    assert (level == levels(links, 4)).all()


def test_breadth_first_search_in_python(run: Runner, random: np.random.Generator) -> None:
    links = graph(random, 40, 2.5)
    starts, targets, _ = compressed(links)
    level, changed, depth = np.full(40, -1, np.int32), np.ones(1, np.int32), 0
    level[7] = 0
    while changed[0]:
        changed[0] = 0
        run(search_python[2, 24], starts, targets, level, changed, depth)
        depth += 1
    assert (level == levels(links, 7)).all()


def test_connected_components(run: Runner, random: np.random.Generator) -> None:
    links = graph(random, 70, 1.2)
    edges = np.argwhere(np.triu(links)).astype(np.int32, order="C")
    parent, changed = np.arange(70, dtype=np.int32), np.ones(1, np.int32)
    while changed[0]:
        changed[0] = 0
        run(kernel("sparse.cu", "join_components")[2, 40], edges, len(edges), parent, changed)
        shorter = np.zeros_like(parent)
        run(kernel("sparse.cu", "shorten_ways")[3, 32], parent, shorter, 70)
        parent = shorter
    smallest = [np.flatnonzero(levels(links, node) >= 0)[0] for node in range(70)]
    assert parent.tolist() == smallest


def weighted(random: np.random.Generator, n: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Edges with weights, and the distances of all nodes from node 0 (infinite where no way leads)."""
    source, target = random.integers(0, n, (2, count)).astype(np.int32)
    weight = random.integers(1, 100, count)
    distance = np.full(n, np.inf)
    distance[0] = 0
    for _ in range(n):
        np.minimum.at(distance, target, distance[source] + weight)
    return source, target, weight, distance


def test_single_source_shortest_paths(run: Runner, random: np.random.Generator) -> None:
    source, target, weight, wanted = weighted(random, 40, 90)
    distance, changed = np.full(40, 2**32 - 1, np.uint32), np.ones(1, np.int32)
    distance[0] = 0
    while changed[0]:
        changed[0] = 0
        run(kernel("sparse.cu", "relax")[3, 32], source, target, weight.astype(np.uint32), 90, distance, changed)
    assert np.isinf(wanted).any()
    assert (np.where(distance == 2**32 - 1, np.inf, distance) == wanted).all()


def test_shortest_paths_in_python(run: Runner, random: np.random.Generator) -> None:
    source, target, weight, wanted = weighted(random, 30, 70)
    distance, changed = np.full(30, np.inf), np.ones(1, np.int32)
    distance[0] = 0
    while changed[0]:
        changed[0] = 0
        run(relax_python[1, 96], source, target, weight.astype(np.float64), distance, changed)
    assert (distance == wanted).all()


def test_rows_times_vector_in_python(run: Runner, random: np.random.Generator) -> None:
    dense, x, y = matrix(random, 37, 20, np.float64), random.random(20), np.zeros(37)
    run(spmv_python[2, 20], *compressed(dense), x, y)
    np.testing.assert_allclose(y, dense @ x, rtol=1e-13)
