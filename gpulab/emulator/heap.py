"""The GPU's heap: what `malloc` and `new` give to a thread and `free` and `delete` take back.

One allocation of the address space, as large as CUDA's by default, which lives as long as the GPU: one kernel may free what
another one has allocated. When it is full, `malloc` gives a null pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.emulator.memory import Allocation

HEAP_BYTES = 8 << 20
"""CUDA's default for cudaLimitMallocHeapSize."""

_UNIT = 16


@dataclass
class Heap:
    """Pieces of one allocation, first fit.

    Attributes
    ----------
    allocation : Allocation
    sizes : dict of int to int
        Bytes of each piece in use, by its address.
    watcher : callable or None
        Is told address and size of each piece, and whether it is taken or given back. While there is one, 16 bytes are
        left free behind each piece, where an access beyond it can be told from one to the next, and the place of a piece that
        was given back is not given out again before the heap is full, so that a stale pointer is known. For the check.
    """

    allocation: Allocation
    sizes: dict[int, int] = field(default_factory=dict)
    watcher: Callable[[int, int, bool], None] | None = None
    _gaps: list[tuple[int, int]] = field(default_factory=list)
    _freed: set[int] = field(default_factory=set)
    _rooms: dict[int, int] = field(default_factory=dict)
    _resting: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._gaps = [(self.allocation.address, self.allocation.size)]

    def take(self, nbytes: int) -> int:
        """Address of a piece of at least so many bytes, aligned to 16; 0 if there is none."""
        size = -(-nbytes // _UNIT) * _UNIT
        if not size:
            return 0
        taken = size + (_UNIT if self.watcher is not None else 0)
        start = self._cut(taken)
        if not start and self._resting:
            self._gaps, self._resting = _merged([*self._gaps, *self._resting]), []
            start = self._cut(taken)
        if start:
            self.sizes[start], self._rooms[start] = size, taken
            self._freed.discard(start)
            self._tell(start, size, True)
        return start

    def _cut(self, taken: int) -> int:
        """Take so many bytes out of the first gap that has them; 0 if none has."""
        for place, (start, room) in enumerate(self._gaps):
            if taken <= room:
                self._gaps[place : place + 1] = [(start + taken, room - taken)] if room > taken else []
                return start
        return 0

    def give_back(self, address: int) -> str:
        """Free a piece; says what is wrong with its address, or nothing. The null pointer is no piece and may be freed."""
        if address == 0:
            return ""
        size = self.sizes.pop(address, None)
        if size is None:
            return "was freed before" if address in self._freed else "is not what malloc or new gave"
        self._freed.add(address)
        self._tell(address, size, False)
        room = address, self._rooms.pop(address)
        if self.watcher is not None:
            self._resting.append(room)
        else:
            self._gaps = _merged([*self._gaps, room])
        return ""

    def _tell(self, address: int, size: int, taken: bool) -> None:
        if self.watcher is not None:
            self.watcher(address, size, taken)


def _merged(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, room in sorted(gaps):
        if found and sum(found[-1]) == start:
            found[-1] = found[-1][0], found[-1][1] + room
        else:
            found.append((start, room))
    return found
