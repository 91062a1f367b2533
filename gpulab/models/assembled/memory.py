"""What SASS accesses of memory cost, from what the PTX accesses did that they stem from.

ptxas merges neighboring loads from shared memory into wider ones, drops local arrays and spills registers; global accesses
stay as they are. Addresses are known of the PTX alone, so each SASS access gets the mean of the PTX accesses of its kind,
place and block. A merged load needs as many passes as the worst of those that it replaces (its lanes' addresses are
multiples of its width, so lanes that met in a bank before meet in the same group of banks now), and at least the passes of
its width: one for 16 lanes at 8 bytes, one for 8 lanes at 16 bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.launch import WARP_SIZE
from gpulab.models.access import SECTOR_BYTES, lanes_per_wavefront
from gpulab.models.assembled.work import Work
from gpulab.models.run import KernelRun
from gpulab.ptx.syntax import Address, Register

GLOBAL = ("ld.global", "st.global", "atom.global")
SHARED = ("ld.shared", "st.shared", "atom.shared", "ldmatrix", "copy")
LOCAL = ("ld.local", "st.local")
_ALL = GLOBAL + SHARED + LOCAL


@dataclass(frozen=True, slots=True)
class Accesses:
    """Requests of each SASS instruction, and what they cost; float64, one for each instruction, 0 for all else.

    Attributes
    ----------
    requests : numpy.ndarray
        Of global, shared and local memory.
    wavefronts : numpy.ndarray
        Passes of the data stage for shared memory.
    sectors : numpy.ndarray
        Of local memory.
    """

    requests: np.ndarray
    wavefronts: np.ndarray
    sectors: np.ndarray


def accesses(
    run: KernelRun,
    executed: np.ndarray,
    matched: np.ndarray,
    ptx: Sequence[Work],
    sass: Sequence[Work],
    guarded: np.ndarray,
) -> Accesses:
    """Estimate requests, and what those of shared and local memory cost.

    Parameters
    ----------
    run : KernelRun
    executed : numpy.ndarray
        Warps that executed each SASS instruction.
    matched : numpy.ndarray
        The PTX block of each SASS instruction, or -1.
    ptx, sass : sequence of Work
        What each instruction is for.
    guarded : numpy.ndarray
        Whether each SASS instruction has a predicate, bool.
    """
    known = _Known(run, ptx)
    found = Accesses(*(np.zeros(len(sass)) for _ in range(3)))
    wide = {(work.kind, work.place) for work in sass if known.is_merged(work)}
    for index, work in enumerate(sass):
        if work.kind not in _ALL:
            continue
        block = int(matched[index])
        rows = known.rows(work, block, (work.kind, work.place) in wide)
        found.requests[index] = executed[index] * known.part_on(rows, block)
        if work.kind in LOCAL:
            found.sectors[index] = found.requests[index] * known.sectors(rows, work)
        elif work.kind in SHARED:
            found.wavefronts[index] = found.requests[index] * known.passes(rows, work)
    for place, asked in known.asked().items():
        same = np.array([(work.kind, work.place) == place for work in sass], bool)
        _leave_out_those_off(found, sass, same & guarded, same & ~guarded, asked)
    return found


def _leave_out_those_off(
    found: Accesses, sass: Sequence[Work], guarded: np.ndarray, others: np.ndarray, asked: float
) -> None:
    """Scale guarded accesses down to the bytes that were asked for: with all lanes off they are no requests."""
    amounts = np.array([work.amount for work in sass], float)
    theirs, mine = (found.requests * amounts)[others].sum(), (found.requests * amounts)[guarded].sum()
    if mine and theirs + mine > asked:
        part = max(0.0, asked - theirs) / mine
        for counts in (found.requests, found.wavefronts, found.sectors):
            counts[guarded] *= part


class _Known:
    """The PTX accesses that SASS accesses may stem from, and what they did."""

    def __init__(self, run: KernelRun, ptx: Sequence[Work]) -> None:
        counters = run.counters
        copies = np.array([work.kind == "copy" for work in ptx], bool)
        self._ptx = ptx
        self._requests = np.where(copies, counters.copied_requests, counters.requests)
        self._wavefronts = np.where(copies, counters.copied_wavefronts, counters.wavefronts)
        self._sectors, self._bytes = counters.sectors, counters.bytes_asked
        self._entered = [
            int(counters.warp_instructions[block.start : block.stop].max()) for block in run.program.graph.blocks
        ]
        self._by_place: dict[tuple[object, ...], list[int]] = defaultdict(list)
        self._neighbors: set[int] = set()
        for block in run.program.graph.blocks:
            inside = [index for index in range(block.start, block.stop) if ptx[index].kind in _ALL]
            for index in inside:
                self._by_place[ptx[index].kind, ptx[index].place].append(index)
                self._by_place[ptx[index].kind, ptx[index].place, block.rank].append(index)
            self._neighbors |= _neighbors(run, ptx, inside)

    def asked(self) -> dict[tuple[object, ...], float]:
        """Requests times bytes of each lane, by kind and place."""
        places = {place: rows for place, rows in self._by_place.items() if len(place) == 2}
        return {
            place: float(sum(self._requests[row] * self._ptx[row].amount for row in rows))
            for place, rows in places.items()
        }

    def is_merged(self, work: Work) -> bool:
        """Whether a SASS access is wider than all PTX accesses of its kind at its place."""
        rows = self._by_place.get((work.kind, work.place))
        return bool(rows) and work.kind in SHARED and work.amount > max(self._ptx[row].amount for row in rows)

    def rows(self, work: Work, block: int, some_merged: bool) -> list[int]:
        """PTX accesses of the same kind at the same place: of this block if there are any, else of all.

        Where some were merged, wide ones stem from those with a neighbor to be merged with, narrow ones from the rest.
        """
        place = (work.kind, work.place)
        rows = self._by_place.get((*place, block)) or self._by_place.get(place, [])
        rows = [row for row in rows if self._requests[row]]
        if some_merged:
            is_merged = self.is_merged(work)
            rows = [row for row in rows if (row in self._neighbors) == is_merged] or rows
        return rows

    def part_on(self, rows: Sequence[int], block: int) -> float:
        """How many of the executed instructions have a lane on, 0 to 1."""
        if not rows or block < 0 or not self._entered[block]:
            return 1.0
        return float(min(1.0, self._requests[rows].mean() / self._entered[block]))

    def passes(self, rows: Sequence[int], work: Work) -> float:
        """Wavefronts of each request."""
        if not rows:
            return max(1.0, work.amount / 4)
        each = self._wavefronts[rows] / self._requests[rows]
        if not self.is_merged(work):
            return float(each.mean())
        bytes_on = self._bytes[rows].sum() / self._requests[rows].sum()
        lanes = bytes_on / np.mean([self._ptx[row].amount for row in rows])
        return float(max(each.max(), np.ceil(lanes / lanes_per_wavefront(work.amount))))

    def sectors(self, rows: Sequence[int], work: Work) -> float:
        """Sectors of each request of local memory; of spills, which have no PTX, those of a full warp."""
        if not rows:
            return work.amount * WARP_SIZE / SECTOR_BYTES
        return float(self._sectors[rows].sum() / self._requests[rows].sum())


def _neighbors(run: KernelRun, ptx: Sequence[Work], inside: Sequence[int]) -> set[int]:
    """Of these accesses of a block those right beside another one: same register, offsets one width apart."""
    found: set[int] = set()
    at: dict[tuple[str, str, int], int] = {}
    for index in inside:
        operands = run.program.function.instructions[index].operands
        address = next((each for each in operands if isinstance(each, Address)), None)
        if address is None or not isinstance(address.base, Register):
            continue
        key, width = (ptx[index].kind, address.base.name), ptx[index].amount
        for other in (address.offset - width, address.offset + width):
            if (*key, other) in at:
                found |= {index, at[*key, other]}
        at[*key, address.offset] = index
    return found
