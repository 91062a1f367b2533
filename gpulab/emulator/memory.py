"""The address space of one emulated GPU.

Addresses are virtual. Each allocation has a window of 2**40 bytes of its own: the window number stands in the high bits
of an address, and the allocation begins 2**38 bytes into its window, so that an index that is far too large, or negative,
still lies in the window of the array that it was meant for and is reported with its true offset. No index error can land
in a neighbouring array, and a wild pointer is a report, not a crash. Windows 1 to 3 are shared memory, local memory and
the kernel's parameters as generic addresses see them; in window 8 lie the addresses of functions (`ptx.callgraph`), which
are no memory. A constant variable begins 2**37 bytes higher in its window.

The host's memory of an allocation is `address + delta` of its window; NumPy arrays are adopted without a copy. Compiled
kernels read the table `Memory.windows` (one row for each window) for base, size and delta.
"""

from __future__ import annotations

import dataclasses
import heapq
from dataclasses import dataclass, field

import numpy as np

from gpulab.emulator.heap import HEAP_BYTES, Heap

WINDOW_BITS = 40
WINDOW_START = 1 << 38
FIRST_WINDOW = 16
SHARED_WINDOW = 1 << WINDOW_BITS
LOCAL_WINDOW = 2 << WINDOW_BITS
PARAMETER_WINDOW = 3 << WINDOW_BITS
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETER_WINDOW}
CONSTANT_MARK = 1 << 37
"""A bit of every address of a constant variable, which tells it from global ones."""

SECTOR_BYTES = 32

# One row of the table that compiled code reads, 64 bytes. `room` is the size for loads, `store_room` for stores; rows
# without an allocation have room -1, so that no access fits, and read-only ones have store_room -1. `read` and `written`
# are host addresses of the maps of touched sectors; a launch fills them in its own copy of the table.
WINDOW_ROW = np.dtype(
    [
        ("base", np.int64),
        ("delta", np.int64),
        ("room", np.int64),
        ("store_room", np.int64),
        ("read", np.int64),
        ("written", np.int64),
        ("pad", np.int64, (2,)),
    ]
)


@dataclass(eq=False, slots=True)
class Allocation:
    """A piece of global memory.

    Attributes
    ----------
    address : int
        Virtual address of its first byte, aligned to 256 bytes.
    size : int
        In bytes; may be 0.
    name : str
        What messages call it, e.g. the name of the kernel's argument.
    writable : bool
    host : numpy.ndarray
        Its bytes, shape (size,), dtype uint8: the memory itself, no copy.
    dtype : numpy.dtype
        Element type for messages; uint8 if unknown.
    shape : tuple of int
        Array shape for messages.
    freed : bool
        True after `Memory.release`.
    defined : numpy.ndarray or None
        For each byte whether it was ever stored, uint8; None if all count as stored. For the check.
    borrowed : bool
        Whether the host array was adopted; an allocation of the emulator's own is remembered when it is freed.
    """

    address: int
    size: int
    name: str
    writable: bool
    host: np.ndarray
    dtype: np.dtype
    shape: tuple[int, ...]
    freed: bool = False
    defined: np.ndarray | None = None
    borrowed: bool = True

    @property
    def window(self) -> int:
        """Number of its window."""
        return self.address >> WINDOW_BITS


@dataclass(eq=False)
class Memory:
    """All allocations of one emulated GPU.

    Attributes
    ----------
    keeps_freed : bool
        While it is true, the windows of freed allocations are not used again, so that a stale address is known as such.
    """

    allocations: dict[int, Allocation] = field(default_factory=dict)
    windows: np.ndarray = field(default_factory=lambda: _empty_rows(64))
    _free: list[int] = field(default_factory=list)
    keeps_freed: bool = False
    _next: int = FIRST_WINDOW
    _freed: dict[int, Allocation] = field(default_factory=dict)
    _heap: Heap | None = None

    @property
    def heap(self) -> Heap:
        """The heap of kernels; it takes its place when it is first asked for."""
        if self._heap is None:
            self._heap = Heap(self.allocate(HEAP_BYTES, "the GPU's heap (malloc, new)"))
        return self._heap

    def allocate(self, nbytes: int, name: str = "allocation") -> Allocation:
        """Allocate zeroed bytes that the emulator owns."""
        # At least one byte, so that every allocation has a host address of its own.
        backing = np.zeros(max(nbytes, 1), np.uint8)[:nbytes]
        return self._place(backing, name, True, np.dtype(np.uint8), (nbytes,), borrowed=False)

    def adopt(
        self, array: np.ndarray, name: str = "array", writable: bool = True, constant: bool = False
    ) -> Allocation:
        """Make a host array part of the address space, without a copy.

        Parameters
        ----------
        array : numpy.ndarray
            C- or Fortran-contiguous.
        name : str
        writable : bool
            False makes every store to it a fault; a read-only array is never writable.
        constant : bool
            Whether it is a variable in constant memory.

        Raises
        ------
        ValueError
            If the array is not contiguous: copy it before.
        """
        flat = array.reshape(-1, order="A") if array.flags.c_contiguous or array.flags.f_contiguous else None
        if flat is None:
            raise ValueError(f"Memory.adopt takes contiguous arrays, but {name} has strides {array.strides}.")
        host = flat.view(np.uint8) if flat.size else np.zeros(1, np.uint8)[:0]
        return self._place(host, name, writable and array.flags.writeable, array.dtype, array.shape, constant=constant)

    def release(self, allocation: Allocation) -> None:
        """End the life of an allocation; its window may be used again."""
        if self.allocations.get(allocation.window) is not allocation:
            return
        del self.allocations[allocation.window]
        self.windows[allocation.window] = _EMPTY_ROW
        allocation.freed = True
        if not allocation.borrowed:
            # Without its bytes, which go now.
            self._freed[allocation.window] = dataclasses.replace(allocation, host=_NO_BYTES)
        heapq.heappush(self._free, allocation.window)

    def find(self, address: int) -> Allocation | None:
        """The allocation in whose window an address falls, even if it is out of its bounds."""
        return self.allocations.get(address >> WINDOW_BITS)

    def freed_at(self, address: int) -> Allocation | None:
        """The allocation of the emulator's own that had the window of an address last, if it has been freed."""
        return self._freed.get(address >> WINDOW_BITS)

    def view(self, address: int, nbytes: int) -> np.ndarray:
        """The bytes at an address, shape (nbytes,), dtype uint8, not a copy.

        Raises
        ------
        IndexError
            If they are not all inside one allocation.
        """
        found = self.find(address)
        offset = address - found.address if found else 0
        if found is None or offset < 0 or offset + nbytes > found.size:
            raise IndexError(f"{nbytes} bytes at address {address:#x} are not inside one allocation.")
        return found.host[offset : offset + nbytes]

    def _place(
        self,
        host: np.ndarray,
        name: str,
        writable: bool,
        dtype: np.dtype,
        shape: tuple[int, ...],
        borrowed: bool = True,
        constant: bool = False,
    ) -> Allocation:
        window = self._take_window()
        address = (window << WINDOW_BITS) + WINDOW_START + (CONSTANT_MARK if constant else 0)
        allocation = Allocation(address, host.size, name, writable, host, dtype, shape, borrowed=borrowed)
        self.allocations[window] = allocation
        row = self.windows[window]
        row["base"], row["delta"] = address, host.ctypes.data - address
        row["room"], row["store_room"] = host.size, host.size if writable else -1
        return allocation

    def _take_window(self) -> int:
        # The lowest free window: equal launches get equal addresses, hence equal counters of the modeled L1.
        kept = [window for window in self._free if window in self._freed] if self.keeps_freed else []
        if len(self._free) > len(kept):
            window = min(set(self._free) - set(kept)) if kept else self._free[0]
            self._free.remove(window)
            heapq.heapify(self._free)
            self._freed.pop(window, None)
            return window
        window, self._next = self._next, self._next + 1
        # The last row stays empty: compiled code looks there for every window number beyond the table.
        if window + 1 >= len(self.windows):
            self.windows = np.concatenate([self.windows, _empty_rows(len(self.windows))])
        return window


def _empty_rows(count: int) -> np.ndarray:
    rows = np.zeros(count, WINDOW_ROW)
    rows["room"] = rows["store_room"] = -1
    return rows


_NO_BYTES = np.zeros(0, np.uint8)
_EMPTY_ROW = _empty_rows(1)[0]
