"""The native counts equal the rules of `models/access.py` on random and on regular addresses."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from gpulab.emulator import Memory
from gpulab.emulator.compiled import aligned
from gpulab.emulator.layout import CONTEXT_WORDS, SHARED, SLOTS
from gpulab.emulator.native import count as native_count
from gpulab.emulator.native import library, touch
from gpulab.models import access

BYTES = 1 << 16
LANES = np.arange(32)


class _Context:
    """A context with one allocation, and the buffers that counting needs."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.base = self.memory.allocate(BYTES).address
        self.maps = np.zeros((2, BYTES // 32), np.uint8)
        row = self.memory.windows[self.base >> 40]
        row["read"], row["written"] = self.maps[0].ctypes.data, self.maps[1].ctypes.data
        self.l1 = aligned(8 * touch.L1_ENTRIES)
        self.caches = aligned(touch.CACHE_ENTRY_BYTES << touch.CACHE_BITS)
        self.memos = aligned(touch.MEMO_BYTES * ((1 << touch.MEMO_BITS) + 1))
        self.words = np.zeros(CONTEXT_WORDS, np.int64)
        values = {"windows": self.memory.windows.ctypes.data, "last_window": len(self.memory.windows) - 1,
                  "l1": self.l1.ctypes.data, "caches": self.caches.ctypes.data, "memos": self.memos.ctypes.data,
                  "epoch": 1}  # fmt: skip
        for name, value in values.items():
            self.words[SLOTS[name]] = value

    def count(self, function: str, *arguments: int) -> np.ndarray:
        """Call a helper with new counters behind the `None` place; the counts in the order of `WORDS`."""
        counters = aligned(touch.WORD_BYTES)
        places = [counters.ctypes.data if a is None else a for a in arguments]
        kinds = [ctypes.c_int64] * (1 + len(places))
        address = library.helpers().addresses[function]
        ctypes.CFUNCTYPE(None, *kinds)(address)(self.words.ctypes.data, *places)
        raw = counters.view(np.int64).reshape(1, -1)
        info = arguments[-1]
        costs = native_count.usual_costs(np.array([info & 255]), np.array([bool(info & SHARED)]))
        return native_count.expand(raw, costs)[0]


def _expected(addresses: np.ndarray, lanes: np.ndarray, size: int, shared: bool) -> list[int]:
    on = addresses[lanes]
    global_only = [access.sectors(on, size), access.sectors_ideal(len(lanes), size), access.lines(on, size)]
    waves = [access.wavefronts(on, lanes, size), access.wavefronts_ideal(lanes, size)]
    return [1, len(lanes) * size, *([0, 0, 0] if shared else global_only), *waves]


def _signed(mask: int) -> int:
    return mask - (1 << 32) if mask >> 31 else mask


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_any_addresses(space: str, size: int) -> None:
    random, context = np.random.default_rng(size), _Context()
    for spread in (4, 40, 4000):
        for _ in range(10):
            offsets = random.integers(0, min(spread, BYTES // size), 32) * size
            addresses = (offsets + (context.base if space == "global" else 0)).astype(np.int64)
            lanes = np.flatnonzero(random.random(32) < random.choice([0.3, 1.0]))
            if not len(lanes):
                continue
            mask = sum(1 << int(lane) for lane in lanes)
            place = np.ascontiguousarray(addresses)
            found = context.count(f"count_{space}", place.ctypes.data, _signed(mask), None, size)
            assert found[:7].tolist() == _expected(addresses, lanes, size, space == "shared")


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("width", [32, 16, 8])
def test_affine_addresses_twice_for_the_table(width: int, size: int) -> None:
    context = _Context()
    for stride in (0, size, 2 * size, 96, -32):
        for row_stride in (0, 64, 1024, width * stride):
            for shared in (False, True):
                start = (0 if shared else context.base) + 32768 + size
                addresses = start + LANES % width * stride + LANES // width * row_stride
                expected = _expected(addresses, LANES, size, shared)
                for _ in range(2):
                    info = size | (SHARED if shared else 0)
                    found = context.count("count_affine", start, stride, row_stride, width, -1, None, info)
                    assert found[:7].tolist() == expected, (stride, row_stride, shared)


@pytest.mark.parametrize("width", [32, 16, 4, 1])
def test_sectors_of_affine_addresses_are_touched_once_each(width: int) -> None:
    for mask in (0xFFFFFFFF, 0x00FFFFFF, 0x000FFFF0, 0x0F0F0F0F, 0x80000001):
        lanes = np.array([lane for lane in range(32) if mask >> lane & 1])
        for stride in (0, 4, 12, 32, -8, 256):
            for row_stride in (0, 4, 16, 64, width * stride, -1024):
                context = _Context()
                start = context.base + 32768
                addresses = start + lanes % width * stride + lanes // width * row_stride
                arguments = start, stride, row_stride, width, _signed(mask), None, 4
                misses = [int(context.count("count_affine", *arguments)[7]) for _ in range(2)]
                expected = np.unique((addresses - context.base) // 32)
                assert misses == [len(expected), 0], (hex(mask), stride, row_stride)
                assert np.flatnonzero(context.maps[0]).tolist() == expected.tolist()


@pytest.mark.parametrize("size", [1, 4, 8, 16])
def test_contiguous_and_uniform_addresses(size: int) -> None:
    context = _Context()
    for offset in (0, size, 128 - size, 256):
        start = context.base + offset
        found = context.count("count_contiguous", start, None, size)
        assert found[:7].tolist() == _expected(start + LANES * size, LANES, size, False)
        found = context.count("count_uniform", start, -1, None, size)
        assert found[:7].tolist() == _expected(np.full(32, start), LANES, size, False)


def test_sectors_miss_once_in_an_epoch_and_are_marked() -> None:
    context = _Context()
    misses = [context.count("count_contiguous", context.base + 128, None, 4)[7] for _ in range(2)]
    context.words[SLOTS["epoch"]] += 1
    misses.append(context.count("count_contiguous", context.base + 128, None, 4)[7])
    assert [int(count) for count in misses] == [4, 0, 4]
    assert np.flatnonzero(context.maps[0]).tolist() == [4, 5, 6, 7]
    assert not context.maps[1].any()
