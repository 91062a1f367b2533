"""A check run: every block in order, on one thread; what is wrong is noted, and the run goes on where that makes sense."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpulab.emulator import layout
from gpulab.emulator.checking import findings
from gpulab.emulator.checking.findings import SEGMENT_WORDS, Finding
from gpulab.emulator.checking.hooks import Facts
from gpulab.emulator.checking.layout import (
    CELL_BYTES,
    COPY_WORDS,
    ENTRIES,
    ENTRY_WORDS,
    GIVEN_BACK,
    GRID_BARRIER_AT,
    IN_NO_PIECE,
    LEDGER,
    OWN,
    OWN_WORDS,
    SHADOW_ROW_BYTES,
    SITES,
    STORED,
    THREAD_ROWS,
    THREADS,
)
from gpulab.emulator.checking.shuffled import ORIGIN_BYTES
from gpulab.emulator.checking.strength import is_barrier_in_memory
from gpulab.emulator.compiled import OsThread, Run, aligned
from gpulab.emulator.compiled_errors import fault_of
from gpulab.emulator.compiled_trace import Tracer
from gpulab.emulator.faults import time_limit_error
from gpulab.emulator.layout import SLOTS
from gpulab.emulator.memory import Allocation, Memory
from gpulab.emulator.program import Program, RunOptions
from gpulab.emulator.variants import variant
from gpulab.errors import Fault
from gpulab.launch import LaunchConfig

# A block that breaks a barrier is given up, and the next one begun; after so many of them no more is to be learned.
_GIVEN_UP_MOST = 1000
# Blocks in flight take turns: as many turns are kept apart beside one for each block.
_MORE_SEGMENTS = 1 << 20
_LARGEST_PIECE = 4


@dataclass(frozen=True)
class CheckResult:
    """What a check run found.

    Attributes
    ----------
    findings : list of Finding
        What was noted while the kernel ran on.
    broken : list of (Fault, int)
        Faults that ended a block, and how many findings there were by then.
    notes : list of str
        What the check could not do.
    """

    findings: list[Finding]
    broken: list[tuple[Fault, int]]
    notes: list[str]


def check(
    program: Program,
    launch: LaunchConfig,
    parameters: bytes,
    memory: Memory,
    symbols: dict[str, int],
    options: RunOptions,
) -> CheckResult:
    """Run a kernel under the check; arguments as for `gpulab.emulator.execute`. Nothing that it does is raised."""
    options = dataclasses.replace(options, count=False, threads=1)
    code = variant(program, launch.block, False, symbols, False, check=True)
    program.prepare(memory)
    with _followed_heap(program, memory):
        run = _CheckRun(program, launch, parameters, memory, symbols, options, code)
        if program.takes_from_heap:
            memory.heap.watcher = run.renew
        run.finish()
    return run.result()


@contextlib.contextmanager
def _followed_heap(program: Program, memory: Memory) -> Iterator[None]:
    """While it lasts, the heap knows which of its bytes were stored: those of pieces from earlier launches count as such."""
    if not program.takes_from_heap:
        yield
        return
    heap, allocation = memory.heap, memory.heap.allocation
    allocation.defined = np.full(allocation.size, IN_NO_PIECE, np.uint8)
    for address, size in heap.sizes.items():
        allocation.defined[address - allocation.address :][:size] = STORED
    try:
        yield
    finally:
        heap.watcher = allocation.defined = None


@dataclass
class _CheckRun(Run):
    """A launch whose code tells the check what it does."""

    broken: list[tuple[Fault, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        blocks = self.launch.blocks if self.options.blocks is None else len(list(self.options.blocks))
        self.shifts = {space: _piece_shift(self.program, space) for space in ("shared", "global")}
        self.entries = aligned(8 * ENTRY_WORDS * ENTRIES).view(np.int64)
        self.segments = np.zeros((blocks + _MORE_SEGMENTS, SEGMENT_WORDS), np.int64)
        self.shadows: list[np.ndarray] = []
        self.rows = np.zeros((len(self.memory.windows), SHADOW_ROW_BYTES // 8), np.int64)
        # Kept, for garbage collection may release an allocation meanwhile.
        self._shadow_arrays(dict(self.memory.allocations))
        self.ledger = np.zeros(len(LEDGER), np.int64)
        for name, value in {
            "time": 1,
            "segments": self.segments.ctypes.data,
            "segments_most": len(self.segments),
            "entries": self.entries.ctypes.data,
            "shadows": self.rows.ctypes.data,
            "grid_barrier": self.options.workspace and self.options.workspace + GRID_BARRIER_AT,
            "grid_blocks": self.launch.blocks,
        }.items():
            self.ledger[LEDGER[name]] = value
        super().__post_init__()

    def _shadow_arrays(self, allocations: dict[int, Allocation]) -> None:
        """Cells for every array that can be stored to. Pages that are never touched take no memory."""
        try:
            for window, allocation in allocations.items():
                if allocation.writable and allocation.size:
                    cells = (allocation.size >> self.shifts["global"]) + 1
                    self.shadows.append(np.zeros(cells * CELL_BYTES, np.uint8))
                    self.rows[window, 0] = self.shadows[-1].ctypes.data
        except MemoryError:
            self.rows[:, 0] = 0
            self.notes.append(
                "The arrays are too large to look for races in global memory on this computer. Check a smaller problem."
            )
        self.shadowed = allocations
        for window, allocation in allocations.items():
            if allocation.defined is not None:
                self.rows[window, 1] = allocation.defined.ctypes.data

    def renew(self, address: int, size: int, taken: bool) -> None:
        """A piece of the heap begins or ends: what was done to it before does not count, and it holds nothing."""
        allocation = self.memory.heap.allocation
        start, window = address - allocation.address, allocation.window
        assert allocation.defined is not None
        allocation.defined[start : start + size] = 0 if taken else GIVEN_BACK
        if self.rows[window, 0]:
            first, last = (place >> self.shifts["global"] for place in (start, start + size))
            place = int(self.rows[window, 0]) + first * CELL_BYTES
            ctypes.memset(place, 0, (last - first) * CELL_BYTES)

    def _thread(self, thread_count: int, tracer: Tracer | None = None) -> OsThread:
        thread = super()._thread(thread_count, tracer)
        shared = int(thread.word("shared_bytes"))
        local = len(thread.buffers["local"])
        facts = Facts(self.program)
        indices, stride = facts.indices, ORIGIN_BYTES * len(facts.followed)
        thread.buffers |= {
            "check": aligned(8 * OWN_WORDS),
            "shared_cells": np.zeros(((shared >> self.shifts["shared"]) + 1) * CELL_BYTES, np.uint8),
            "local_map": np.zeros(max(local, 1), np.uint8),
            "overflows": np.zeros(4 * layout.WARP * max(len(indices.arithmetic), 1), np.uint8),
            "nowhere": aligned(64),
            "origins": aligned(max(stride * layout.WARP, 64)),
        }
        if any(is_barrier_in_memory(form) for form in self.program.forms):
            # Hardly any page of it is ever touched.
            thread.buffers["threads"] = np.zeros(8 * THREAD_ROWS * THREADS, np.uint8)
        if self.program.copies:
            sites = np.zeros(SITES, np.uint8)
            sites[[index for index in self.program.copies if index < SITES]] = 1
            thread.buffers |= {"copies": aligned(8 * COPY_WORDS * layout.WARP * layout.WARP), "copy_sites": sites}
        own = thread.buffers["check"].view(np.int64)
        words = {
            "ledger": self.ledger.ctypes.data,
            "shared_shift": self.shifts["shared"],
            "global_shift": self.shifts["global"],
            "local_map_bytes": local,
            "overflow_stride": 4 * len(indices.arithmetic),
            "origin_stride": stride,
            "origin_bytes": stride * layout.WARP,
            **{name: thread.buffers[name].ctypes.data for name in OWN if name in thread.buffers},
        }
        for name, value in words.items():
            own[OWN[name]] = value
        thread.context[SLOTS["check"]] = own.ctypes.data
        return thread

    def drive(self, thread: OsThread) -> None:
        """Run blocks; one that breaks is given up, and all of them in flight in a deadlock of all."""
        while True:
            super().drive(thread)
            if self.calls.error is not None:
                return
            failed = next((each for each in thread.flying if each.result == layout.FAULT), None)
            if failed is None:
                return
            self.broken.append((fault_of(self, failed).fault, int(self.ledger[LEDGER["entry_count"]])))
            if len(self.broken) >= _GIVEN_UP_MOST:
                self.notes.append(f"The run was ended after {_GIVEN_UP_MOST:,} blocks that could not go on.")
                return
            self._give_up([failed] if failed.alone else thread.flying)

    def _give_up(self, contexts: list[OsThread]) -> None:
        for each in contexts:
            each.context[SLOTS["in_block"]] = 0
            each.result, each.alone = layout.DONE, True
        self.shared_words[2] = 2**62  # no block is beyond the limit

    def _raise_errors(self, timed_out: bool) -> None:
        for error in (*(thread.error for thread in self.threads), self.calls.error):
            if error is not None:
                raise error
        stopped = [each for each in self.contexts if each.result == layout.STOP]
        if timed_out and stopped:
            where = [stopped[0].word(name) for name in ("fault_instruction", "fault_block", "fault_warp")]
            error = time_limit_error(self.program, self.launch, self.options.time_limit_s, *where)
            source = self.program.function.instructions[max(where[0], 0)]
            place = source.location if where[0] >= 0 else None
            fault = Fault(
                kind="deadlock",
                message=str(error),
                file=place.file if place else None,
                line=place.line if place else None,
                ptx_line=source.span.line,
            )
            self.broken.append((fault, int(self.ledger[LEDGER["entry_count"]])))

    def result(self) -> CheckResult:
        """What was found."""
        segments = self.segments[: int(self.ledger[LEDGER["segment_count"]])]
        found = findings.read(self.entries, int(self.ledger[LEDGER["entry_count"]]), segments)
        if self.ledger[LEDGER["entries_lost"]]:
            self.notes.append(f"More than {ENTRIES} different faults were met; only the first are listed.")
        return CheckResult(found, self.broken, self.notes)


def _piece_shift(program: Program, space: str) -> int:
    """Log2 of the bytes that a cell of the shadow stands for: the smallest access to that space."""
    sizes = [
        form.access_bytes
        for form in program.forms
        if form.access_bytes and (form.space or "generic").partition("::")[0] in (space, "generic")
    ]
    return (min([*sizes, _LARGEST_PIECE])).bit_length() - 1
