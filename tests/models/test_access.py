"""Sectors, lines and wavefronts of single requests, against measured and documented values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.models import access

LANES = np.arange(32)


def strided(stride: int, size: int, offset: int = 0) -> np.ndarray:
    """Addresses of 32 lanes, `stride` elements of `size` bytes apart."""
    return offset + LANES * stride * size


# CUDA C++ Best Practices Guide: aligned, misaligned, stride 2, stride 8 and more, the same word.
@pytest.mark.parametrize(
    ("addresses", "sectors"),
    [
        (strided(1, 4), 4),
        (strided(1, 4, 4), 5),
        (strided(2, 4), 8),
        (strided(8, 4), 32),
        (strided(100, 4), 32),
        (strided(0, 4), 1),
        (strided(-1, 4, 124), 4),
        (strided(1, 4)[::-1], 4),
        (strided(1, 4)[:1], 1),
        (strided(1, 4)[:0], 0),
    ],
)
def test_sectors(addresses: np.ndarray, sectors: int) -> None:
    assert access.sectors(addresses, 4) == sectors


@pytest.mark.parametrize(("size", "sectors", "lines"), [(1, 1, 1), (2, 2, 1), (4, 4, 1), (8, 8, 2), (16, 16, 4)])
def test_neighbors_of_every_width(size: int, sectors: int, lines: int) -> None:
    assert access.sectors(strided(1, size), size) == access.sectors_ideal(32, size) == sectors
    assert access.lines(strided(1, size), size) == lines
    assert access.lines(strided(1, size, 64), size) == -(-(64 + 32 * size) // 128)


# Wavefronts of global loads that hit L1, measured with Nsight Compute on A100, A40 and H200 (te42kyfo/gpu-benches).
@pytest.mark.parametrize(
    ("size", "strides", "wavefronts"),
    [
        (4, (0, 1, 3, 5, 31, 33), 1),
        (4, (2, 6), 2),
        (4, (4, 12), 4),
        (4, (8, 24), 8),
        (4, (16, 48), 16),
        (4, (32, 64), 32),
        (8, (1,), 2),
        (8, (2,), 4),
        (8, (3,), 2),
        (8, (4,), 8),
        (8, (8,), 16),
        (8, (16,), 32),
    ],
)
def test_wavefronts(size: int, strides: tuple[int, ...], wavefronts: int) -> None:
    assert {access.wavefronts(strided(stride, size), LANES, size) for stride in strides} == {wavefronts}


def test_wide_accesses_of_one_address() -> None:
    # NVIDIA forum 339143: a float4 that all lanes read from the same four banks takes 32 cycles if the rows differ.
    assert access.wavefronts(strided(8, 16), LANES, 16) == 32
    assert access.wavefronts(strided(0, 16), LANES, 16) == 4
    assert access.wavefronts(strided(1, 16), LANES, 16) == 4


def test_lanes_that_are_off_cost_nothing() -> None:
    half = LANES[:16]
    assert access.wavefronts(strided(1, 8)[:16], half, 8) == access.wavefronts_ideal(half, 8) == 1
    assert access.wavefronts(strided(1, 8)[::2], LANES[::2], 8) == access.wavefronts_ideal(LANES[::2], 8) == 2
    assert access.wavefronts_ideal(LANES[:0], 4) == access.wavefronts(np.zeros(0), LANES[:0], 4) == 0


def test_chunks_come_in_the_order_of_the_lanes() -> None:
    assert list(access.chunks(np.array([96, 0, 100, 32]), 4, 32)) == [3, 0, 1]


SIZES = st.sampled_from([1, 2, 4, 8, 16])


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=32, unique=True), SIZES)
def test_bounds_of_every_request(elements: list[int], size: int) -> None:
    addresses, lanes = np.array(elements) * size, LANES[: len(elements)]
    sectors, lines = access.sectors(addresses, size), access.lines(addresses, size)
    assert access.sectors_ideal(len(elements), size) <= sectors <= len(elements)
    assert -(-sectors // 4) <= lines <= sectors
    ideal = access.wavefronts_ideal(lanes, size)
    assert ideal <= access.wavefronts(addresses, lanes, size) <= max(ideal, len(elements))


@given(st.lists(st.integers(0, 500), min_size=2, max_size=32), SIZES, st.randoms())
def test_order_of_lanes_does_not_change_sectors(elements: list[int], size: int, random) -> None:
    addresses = np.array(elements) * size
    shuffled = addresses.copy()
    random.shuffle(shuffled)
    assert access.sectors(addresses, size) == access.sectors(shuffled, size)
