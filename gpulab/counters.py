"""`Counters`: what one launch did, per PTX instruction of the kernel.

Both engines of the emulator fill the same record; everything that a user sees (metrics, lines, findings, time) is
derived from it. All arrays have one entry for each instruction of the kernel (device functions inlined where they can be)
and dtype int64. A *request* is one warp-level memory instruction with at least one active, predicated-on lane.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpulab.trace import Trace

PER_INSTRUCTION = (
    "warp_instructions",
    "thread_instructions",
    "thread_instructions_pred_on",
    "divergent_branches",
    "requests",
    "bytes_asked",
    "sectors",
    "sectors_ideal",
    "lines",
    "wavefronts",
    "wavefronts_ideal",
    "l1_miss_sectors",
    "copied_requests",
    "copied_bytes",
    "copied_wavefronts",
    "copied_wavefronts_ideal",
)
COPIED = {
    "requests": "copied_requests",
    "bytes_asked": "copied_bytes",
    "wavefronts": "copied_wavefronts",
    "wavefronts_ideal": "copied_wavefronts_ideal",
}
"""The counters of an asynchronous copy's store, by the name that they have for all other stores."""


@dataclass(slots=True)
class Counters:
    """Counts of one launch.

    Attributes
    ----------
    warp_instructions : numpy.ndarray
        Times that the instruction was executed by a warp, whatever the number of active lanes.
    thread_instructions : numpy.ndarray
        The same weighted by active lanes, regardless of the guard predicate.
    thread_instructions_pred_on : numpy.ndarray
        The same weighted by lanes that are active and whose guard predicate is true.
    divergent_branches : numpy.ndarray
        Times that at least two active lanes took different targets, fall-through included.
    requests : numpy.ndarray
        Memory instructions with at least one lane on (global, local, shared, generic).
    bytes_asked : numpy.ndarray
        Bytes that the lanes asked for: lanes on, times the bytes of the access.
    sectors : numpy.ndarray
        Distinct 32-byte sectors over the lanes of each request, summed. 0 for shared memory.
    sectors_ideal : numpy.ndarray
        Sectors if each lane that is on accessed its own neighbouring bytes: ceil(lanes on * bytes / 32).
    lines : numpy.ndarray
        Distinct 128-byte lines of each request, summed. 0 for shared memory.
    wavefronts : numpy.ndarray
        Passes of the L1 data stage by the bank rule (32 banks of 4 bytes), for shared *and* global accesses.
    wavefronts_ideal : numpy.ndarray
        The least number for the lanes that are on and the width: groups of 32, 16 or 8 lanes with a lane on.
    l1_miss_sectors : numpy.ndarray
        Global load sectors that missed a modeled L1 of 128 KiB (1,024 sets of 4 sectors, first in, first out), which is
        empty at the start of each block (*modeled*). Always 0 where the launch was traced, as every profiled one is: then
        `gpulab.models.caches` tells what L1 does.
    copied_requests, copied_bytes, copied_wavefronts, copied_wavefronts_ideal : numpy.ndarray
        The store into shared memory of an asynchronous copy; the other counters of such an instruction are those of its
        global load.
    distinct_sectors_read, distinct_sectors_written : int
        Different 32-byte sectors of global memory that the launch loaded from / stored to.
    footprint_sectors : int
        Different sectors touched in either way.
    blocks, warps, threads : int
        Launched.
    sampled_blocks : int or None
        Number of blocks that really ran if the launch was sampled, else None. Of a profile, all other counts are
        extrapolated to the grid then.
    trace : Trace or None
        A sample of the lines that were accessed, if it was asked for. Of a sampled launch it is not extrapolated.
    """

    warp_instructions: np.ndarray
    thread_instructions: np.ndarray
    thread_instructions_pred_on: np.ndarray
    divergent_branches: np.ndarray
    requests: np.ndarray
    bytes_asked: np.ndarray
    sectors: np.ndarray
    sectors_ideal: np.ndarray
    lines: np.ndarray
    wavefronts: np.ndarray
    wavefronts_ideal: np.ndarray
    l1_miss_sectors: np.ndarray
    copied_requests: np.ndarray
    copied_bytes: np.ndarray
    copied_wavefronts: np.ndarray
    copied_wavefronts_ideal: np.ndarray
    distinct_sectors_read: int = 0
    distinct_sectors_written: int = 0
    footprint_sectors: int = 0
    blocks: int = 0
    warps: int = 0
    threads: int = 0
    sampled_blocks: int | None = None
    trace: Trace | None = None

    @classmethod
    def zeros(cls, instructions: int) -> Counters:
        """All-zero counters for a kernel of so many instructions."""
        return cls(**{name: np.zeros(instructions, np.int64) for name in PER_INSTRUCTION})

    def leave_out(self, instructions: np.ndarray) -> None:
        """Forget what some instructions did; `instructions` is a mask, bool."""
        for name in PER_INSTRUCTION:
            getattr(self, name)[instructions] = 0

    def differences(self, other: Counters) -> dict[str, tuple[object, object]]:
        """Fields in which two records differ, as ``{name: (mine, theirs)}``; empty if equal."""
        found: dict[str, tuple[object, object]] = {}
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            equal = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            if not equal:
                found[item.name] = (mine, theirs)
        return found
