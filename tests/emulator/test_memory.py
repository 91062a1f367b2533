"""The address space: windows, adoption without copies, bounds."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.emulator.memory import WINDOW_BITS, WINDOW_START, Memory


def test_adopted_array_is_the_memory_itself() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    memory = Memory()
    allocation = memory.adopt(array, "a")
    memory.view(allocation.address + 4, 4).view(np.float32)[0] = 50
    assert array[0, 1] == 50
    assert allocation.address % 256 == 0
    assert (allocation.size, allocation.dtype, allocation.shape) == (24, np.float32, (2, 3))


def test_fortran_order_is_adopted_in_memory_order() -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    allocation = Memory().adopt(array)
    assert allocation.host.view(np.int32).tolist() == [0, 3, 1, 4, 2, 5]


def test_strided_array_is_refused() -> None:
    with pytest.raises(ValueError, match="rows has strides"):
        Memory().adopt(np.zeros((4, 4))[:, 1], "rows")


def test_index_errors_stay_in_their_own_window() -> None:
    memory = Memory()
    first, second = memory.allocate(100, "first"), memory.allocate(100, "second")
    assert memory.find(second.address - 8) is second
    assert memory.find(first.address + (1 << 39)) is first
    assert memory.find(12345) is None
    assert first.address == (16 << WINDOW_BITS) + WINDOW_START


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 1), (99, 2), (101, 1)])
def test_view_outside_is_refused(offset: int, nbytes: int) -> None:
    memory = Memory()
    allocation = memory.allocate(100)
    with pytest.raises(IndexError):
        memory.view(allocation.address + offset, nbytes)


def test_released_window_is_reused_lowest_first_and_its_row_is_empty() -> None:
    memory = Memory()
    kept = [memory.allocate(8) for _ in range(3)]
    memory.release(kept[1])
    memory.release(kept[0])
    assert memory.windows["room"][kept[1].window] == -1
    assert kept[1].freed and memory.find(kept[1].address) is None
    assert memory.allocate(8).window == kept[0].window


def test_table_grows_and_its_last_row_stays_empty() -> None:
    memory = Memory()
    last = [memory.allocate(1) for _ in range(200)][-1]
    assert last.window < len(memory.windows) - 1
    assert memory.windows["room"][-1] == -1


def test_read_only_memory_has_no_room_for_stores() -> None:
    memory = Memory()
    array = np.zeros(4)
    array.flags.writeable = False
    allocation = memory.adopt(array)
    row = memory.windows[allocation.window]
    assert (row["room"], row["store_room"]) == (32, -1)


def test_zero_bytes_are_allowed() -> None:
    memory = Memory()
    assert memory.adopt(np.zeros((0, 3))).size == 0
    assert memory.view(memory.allocate(0).address, 0).size == 0
