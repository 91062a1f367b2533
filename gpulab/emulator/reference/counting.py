"""What the interpreter counts while it runs: instructions, and what memory requests cost by `gpulab.models.access`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpulab import trace
from gpulab.counters import Counters
from gpulab.emulator.analysis.touched import Touched
from gpulab.launch import LaunchConfig
from gpulab.models import access
from gpulab.ptx.opcodes import Form

if TYPE_CHECKING:
    from gpulab.emulator.reference.warp import Warp

L1_ENTRIES = 4096
"""Sectors of 32 bytes: a modeled L1 of 128 KiB."""

L1_WAYS = 4
_L1_SETS = L1_ENTRIES // L1_WAYS
# Of the product, bits 33 to 40 choose the four sets of a line: its low bits, moved by three with each 256 lines, so that
# the rows of a matrix do not share them, and by 97 from one allocation to the next.
_L1_FACTOR = (1 << 33) + (3 << 25) + 97
_L1_SHIFT = 33
_WORD_BYTES = 4
_ROW_BYTES = 128
_KINDS = {"load": trace.LOAD, "store": trace.STORE}


L1 = defaultdict[int, deque[int]]


def new_l1() -> L1:
    """A modeled L1: the sectors in each set. In a set the first that came is the first to go."""
    return defaultdict(lambda: deque(maxlen=L1_WAYS))


class Tally:
    """Fills the `Counters` of one launch."""

    def __init__(
        self, instructions: int, launch: LaunchConfig, *, count: bool, tracing: trace.Tracing | None = None
    ) -> None:
        self.counters = Counters.zeros(instructions)
        self._launch = launch
        self._count = count
        self._recorder = trace.Recorder(tracing) if count and tracing is not None else None
        self._warp: Warp
        self._l1 = new_l1()
        self._read: set[int] = set()
        self._written: set[int] = set()

    def start_block(self) -> L1:
        """Begin a block; returns its L1, which is empty."""
        self.counters.blocks += 1
        self.counters.warps += self._launch.warps_per_block
        self.counters.threads += self._launch.threads_per_block
        return new_l1()

    def enter_block(self, l1: L1) -> None:
        """Go on with a block."""
        self._l1 = l1

    def finish(self, touched: Touched, chosen: Sequence[int] | None) -> Counters:
        """The counters, complete; adds the sectors to `touched`. `chosen` are the blocks that ran, None for all."""
        if chosen is not None:
            self.counters.sampled_blocks = self.counters.blocks
        if self._recorder is not None:
            self.counters.trace = self._recorder.finish(chosen)
            self.counters.l1_miss_sectors[:] = 0
        touched.mark(self._read, self._written)
        distinct = touched.counts().sum(axis=0).tolist()
        counters = self.counters
        counters.distinct_sectors_read, counters.distinct_sectors_written, counters.footprint_sectors = distinct
        return counters

    def instruction(self, warp: Warp, index: int, on: np.ndarray) -> None:
        """A warp executes an instruction with its active lanes, and these of them predicated on."""
        self._warp = warp
        warp.executed += 1
        if self._count:
            self.counters.warp_instructions[index] += 1
            self.counters.thread_instructions[index] += int(warp.active.sum())
            self.counters.thread_instructions_pred_on[index] += int(on.sum())

    def branch(self, index: int, targets: int) -> None:
        """A branch sent the active lanes to so many different places."""
        if self._count and targets > 1:
            self.counters.divergent_branches[index] += 1

    def request(self, index: int, form: Form, space: str, addresses: np.ndarray, lanes: np.ndarray) -> None:
        """A memory request to one space.

        Parameters
        ----------
        index : int
            The instruction.
        form : Form
        space : str
            ``global``, ``shared`` or ``local``.
        addresses : numpy.ndarray
            Of the lanes that are on: virtual addresses, or offsets in shared or local memory.
        lanes : numpy.ndarray
            Their numbers.
        """
        if not self._count or len(lanes) == 0:
            return
        counters, size = self.counters, form.access_bytes
        counters.requests[index] += 1
        counters.bytes_asked[index] += len(lanes) * size
        places = _interleaved(addresses, lanes) if space == "local" else addresses
        counters.wavefronts[index] += access.wavefronts(places, lanes, size)
        counters.wavefronts_ideal[index] += access.wavefronts_ideal(lanes, size)
        if space == "shared":
            return
        counters.sectors_ideal[index] += access.sectors_ideal(len(lanes), size)
        if space == "global":
            sectors = access.chunks(addresses, size, access.SECTOR_BYTES)
            counters.sectors[index] += len(sectors)
            counters.lines[index] += access.lines(addresses, size)
            self._touch(index, form, sectors.tolist())
        else:
            words = _local_words(addresses, lanes, size)
            counters.sectors[index] += access.sectors(words, _WORD_BYTES)
            counters.lines[index] += access.lines(words, _WORD_BYTES)

    def copied(self, index: int, form: Form, offsets: np.ndarray, lanes: np.ndarray) -> None:
        """The store of an asynchronous copy, at these offsets in shared memory; `request` has its global load."""
        if not self._count or len(lanes) == 0:
            return
        size = form.access_bytes
        self.counters.copied_requests[index] += 1
        self.counters.copied_bytes[index] += len(lanes) * size
        self.counters.copied_wavefronts[index] += access.wavefronts(offsets, lanes, size)
        self.counters.copied_wavefronts_ideal[index] += access.wavefronts_ideal(lanes, size)

    def _touch(self, index: int, form: Form, sectors: list[int]) -> None:
        if self._recorder is not None:
            warp, kind = self._warp, _KINDS.get(form.kind or "", trace.ATOMIC)
            where = {"block": warp.block.number, "warp": warp.number, "instruction": index, "time": warp.executed - 1}
            self._recorder.request(sectors, kind=kind, **where)
        if form.kind != "store":
            self._read.update(sectors)
        if form.kind != "load":
            self._written.update(sectors)
            return
        # The whole request is looked up before any of its sectors is replaced.
        missing = [sector for sector in sectors if sector not in self._l1[l1_set(sector)]]
        for sector in missing:
            self._l1[l1_set(sector)].append(sector)
        self.counters.l1_miss_sectors[index] += len(missing)


def l1_set(sector: int) -> int:
    """Set of the modeled L1 for a sector; the four sectors of a line are in four neighboring sets."""
    return (sector // 4 * _L1_FACTOR >> _L1_SHIFT) * 4 % _L1_SETS + sector % 4


def _interleaved(offsets: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Where hardware puts a lane's local bytes: each row of 128 bytes holds one word of every lane."""
    return offsets // _WORD_BYTES * _ROW_BYTES + lanes * _WORD_BYTES + offsets % _WORD_BYTES


def _local_words(offsets: np.ndarray, lanes: np.ndarray, size: int) -> np.ndarray:
    """Addresses of all words that the lanes access, lane by lane."""
    steps = np.arange(0, max(size, _WORD_BYTES), _WORD_BYTES)
    first = offsets // _WORD_BYTES * _WORD_BYTES
    return _interleaved(first[:, None] + steps, lanes[:, None]).ravel()
