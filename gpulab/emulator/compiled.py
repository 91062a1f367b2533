"""The compiled engine: runs a launch with native code.

`variants` makes the code of a warp, `native.driver` calls it for every warp of every block, and this module prepares the
memory that both use, starts the OS threads, watches over them (Ctrl-C, time limit), and turns what they left behind into
`Counters` or an error.

Blocks run on several OS threads when their order cannot matter; each thread has counters of its own. A fault in one block
lets every block before it run to its end, so that the fault reported is the one that a run in order meets first.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gpulab.counters import Counters
from gpulab.emulator import layout, workers
from gpulab.emulator.analysis.touched import Touched
from gpulab.emulator.callback import Callback
from gpulab.emulator.compiled_counters import counters_of
from gpulab.emulator.compiled_errors import error_of
from gpulab.emulator.compiled_trace import Tracer
from gpulab.emulator.layout import FAULT_CODES, SLOTS
from gpulab.emulator.memory import Memory
from gpulab.emulator.native import library, touch
from gpulab.emulator.program import Program, RunOptions
from gpulab.emulator.variants import Variant, variant
from gpulab.errors import GpulabError
from gpulab.launch import LaunchConfig

_NO_FAULT = 2**62
_POLL_S = 0.05
_STOP_POLL_S = 0.001
# An OS thread takes so many blocks at once, neighbors, whose memory the processor reads ahead; but not more than a part of
# its share, so that all end at about the same time.
_MOST_TURNS, _SHARES = 256, 16


def execute(
    program: Program,
    launch: LaunchConfig,
    parameters: bytes,
    memory: Memory,
    symbols: dict[str, int],
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen, so it can be shared)
    general: bool = False,
) -> Counters:
    """Run a kernel; see `gpulab.emulator.execute`.

    Parameters
    ----------
    general : bool
        Run only the general variant, which is slower and makes no assumption. For tests.
    """
    program.prepare(memory)
    code = variant(program, launch.block, options.count, symbols, general)
    run = Run(program, launch, parameters, memory, symbols, options, code)
    start = time.perf_counter()
    run.finish()
    code.spent += time.perf_counter() - start
    return counters_of(run)


def thread_count(options: RunOptions, blocks: int, order_matters: bool) -> int:
    """OS threads for a launch: as asked, else $GPULAB_THREADS, else the CPUs that this process may use."""
    if order_matters:
        return 1
    wanted = options.threads or _from_environment() or _usable_processors()
    return max(1, min(wanted, blocks))


def _usable_processors() -> int:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(affinity, _quota() or affinity)


@functools.cache
def _quota() -> int | None:
    """Processors that the container's quota (cgroup 2) amounts to, rounded up; None without one."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):
        # No such file outside Linux, and "max" in place of a number where there is no quota.
        return None


def _from_environment() -> int | None:
    text = os.environ.get("GPULAB_THREADS")
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise GpulabError(f"GPULAB_THREADS must be a whole number of at least 1, but {text!r} came.")
    return int(text)


def aligned(nbytes: int) -> np.ndarray:
    """Zeroed bytes that begin at a multiple of 64."""
    backing = np.zeros(nbytes + 64, np.uint8)
    start = -backing.ctypes.data % 64
    return backing[start : start + nbytes]


def _carve(sizes: dict[str, int]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Zeroed bytes of each size, in one piece of memory, and their addresses, which are multiples of 64."""
    ends = list(itertools.accumulate(-(-size // 64) * 64 for size in sizes.values()))
    whole = aligned(ends[-1])
    origin = whole.ctypes.data
    starts = dict(zip(sizes, [0, *ends], strict=False))
    return (
        {name: whole[starts[name] : starts[name] + size] for name, size in sizes.items()},
        {name: origin + start for name, start in starts.items()},
    )


@dataclass
class OsThread:
    """An OS thread's context and memory, and those of the blocks that it has in flight besides.

    Attributes
    ----------
    result : int
        What the driver returned for this context.
    beside : list of OsThread
        Contexts of more blocks.
    flying : list of OsThread
        Those, this one among them, whose block goes on.
    alone : bool
        Whether a deadlock is that of this block alone.
    tracer : Tracer or None
        Where it records what is traced, for its own blocks and those beside.
    """

    context: np.ndarray
    buffers: dict[str, np.ndarray]
    result: int = layout.DONE
    error: BaseException | None = None
    begun: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    beside: list[OsThread] = field(default_factory=list)
    flying: list[OsThread] = field(init=False)
    alone: bool = True
    tracer: Tracer | None = None

    def __post_init__(self) -> None:
        self.flying = [self]

    def word(self, name: str) -> int:
        return int(self.context[SLOTS[name]])


@dataclass
class Run:
    """One launch: its memory, its OS threads, and how it ended."""

    program: Program
    launch: LaunchConfig
    parameters: bytes
    memory: Memory
    symbols: dict[str, int]
    options: RunOptions
    code: Variant
    threads: list[OsThread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.windows = self.memory.windows.copy()
        # Kept, for garbage collection may release an allocation whose host address is in the table.
        self.allocations = dict(self.memory.allocations)
        self.shared_words = np.zeros(8, np.int64)  # stop, next, fault limit
        self.shared_words[2] = _NO_FAULT
        chosen = self.options.blocks
        self.blocks = None if chosen is None else np.asarray(list(chosen), np.int64)
        self.block_count = self.launch.blocks if self.blocks is None else len(self.blocks)
        self.in_flight = self.options.in_flight(self.program, self.block_count)
        self.tids = _thread_indices(self.launch.block)
        self.parameter_buffer = np.frombuffer(self.parameters + bytes(16), np.uint8).copy()
        self.symbol_table = np.array([self.symbols[name] for name in sorted(self.symbols)] or [0], np.int64)
        self.touched = self._touched() if self.options.count else None
        count = thread_count(self.options, self.block_count, self.program.order_sensitive)
        self.calls = Callback(self.program, self.memory)
        self.threads = [self._thread(count) for _ in range(count)]

    # ---- preparation

    def _touched(self) -> Touched:
        touched = self.options.touched or Touched(self.memory.allocations)
        for window, maps in touched.maps.items():
            self.windows[window]["read"], self.windows[window]["written"] = (each.ctypes.data for each in maps)
        return touched

    def _thread(self, thread_count: int, tracer: Tracer | None = None) -> OsThread:
        program, launch = self.program, self.launch
        instructions, warps = len(program.forms), launch.warps_per_block
        shared_bytes, shared_words = shared_memory_bytes(program, launch), self.shared_words.ctypes.data
        counted, tracing = 1 if self.options.count else 0, self.options.tracing
        if counted and tracing is not None:
            tracer = tracer or Tracer(tracing)
        buffers, addresses = _carve(
            {
                "shared": shared_bytes,
                "local": program.local_bytes * warps * layout.WARP + 32,
                "frames": self.code.frame_bytes * warps,
                "block_counters": 16 * len(program.graph.blocks),
                "memory_counters": touch.WORD_BYTES * (instructions + len(program.copies)),
                "branch_counters": 16 * instructions,
                "caches": counted * touch.CACHE_ENTRY_BYTES << touch.CACHE_BITS,
                "memos": counted * touch.MEMO_BYTES * ((1 << touch.MEMO_BITS) + instructions),
                "l1": 8 * touch.L1_ENTRIES,
            }
        )
        words = {
            "windows": self.windows.ctypes.data,
            "last_window": len(self.windows) - 1,
            "params": self.parameter_buffer.ctypes.data,
            "param_bytes": program.parameter_bytes,
            "symbols": self.symbol_table.ctypes.data,
            "tids": self.tids.ctypes.data,
            **{f"ntid.{axis}": size for axis, size in zip("xyz", launch.block, strict=True)},
            **{f"nctaid.{axis}": size for axis, size in zip("xyz", launch.grid, strict=True)},
            "threads": launch.threads_per_block,
            "warps": warps,
            "shared_bytes": shared_bytes,
            "dynamic_shared": launch.dynamic_shared_bytes,
            "local_bytes": program.local_bytes,
            "local_fixed": program.local_fixed_bytes,
            "local_used": program.local_fixed_bytes,
            "stop": shared_words,
            "next": shared_words + 8,
            "fault_limit": shared_words + 16,
            "blocks": 0 if self.blocks is None else self.blocks.ctypes.data,
            "block_count": self.block_count,
            # One at a time where blocks may have to be begun beside each other.
            "turns": 1
            if self.in_flight > 1
            else max(1, min(_MOST_TURNS, self.block_count // (_SHARES * thread_count))),
            "frame_bytes": self.code.frame_bytes,
            "fast": self.code.address,
            "passes": self.program.passes.ctypes.data if self.code.kind.general else 0,
            "flow_blocks": len(program.graph.blocks),
            "block_table": self.code.block_table.ctypes.data,
            "print": self.calls.address,
            "workspace": self.options.workspace,
            "trace": 0 if tracer is None else tracer.state.ctypes.data,
            "fault_instruction": -1,  # a launch that is stopped between two blocks is nowhere
            **addresses,
        }
        # In cache lines of its own, for each thread writes to its context all the time.
        context = aligned(8 * layout.CONTEXT_WORDS + 128)[: 8 * layout.CONTEXT_WORDS].view(np.int64)
        for name, value in words.items():
            context[SLOTS[name]] = value
        return OsThread(context, buffers, tracer=tracer)

    # ---- running

    def finish(self) -> None:
        """Run all blocks; raise what went wrong."""
        try:
            for each in self.threads:
                workers.start(functools.partial(self._work, each))
            timed_out = self._watch()
        except BaseException:
            # Ctrl-C, most of all.
            self._stop()
            raise
        self._raise_errors(timed_out)

    def _watch(self) -> bool:
        """Wait for the threads, of which the time limit may stop some: whether it did."""
        deadline = time.monotonic() + self.options.time_limit_s
        timed_out = False
        for thread in self.threads:
            while not thread.ended.wait(_POLL_S):
                if time.monotonic() > deadline and not timed_out:
                    timed_out = True
                    self.shared_words[0] = 1
        return timed_out

    def _stop(self) -> None:
        """Stop the threads, and wait until native code has let go of the arrays, whatever signals come meanwhile.

        `Thread.join` cannot be asked: in Python 3.11 and 3.12 a Ctrl-C in it makes a running thread look ended. A thread
        that has not begun yet finds the word that stops it before it touches anything.
        """
        self.shared_words[0] = 1
        while any(thread.begun and not thread.ended.is_set() for thread in self.threads):
            with contextlib.suppress(KeyboardInterrupt):
                time.sleep(_STOP_POLL_S)

    def _work(self, thread: OsThread) -> None:
        thread.begun = True
        try:
            self.drive(thread)
        except BaseException as error:  # noqa: BLE001 (raised again by the launching thread)
            thread.error = error
            self.shared_words[0] = 1
        finally:
            thread.ended.set()

    def drive(self, thread: OsThread) -> None:
        """Run blocks until there are none left, or something stops the thread.

        A block of which no warp gets any further stays in flight, in a context of its own, and the next one is begun beside
        it. If nothing changes in a round of all blocks in flight, nothing ever will.
        """
        while thread.flying:
            flying, ran, stuck = thread.flying, list[OsThread](), list[OsThread]()
            for each in flying:
                each.context[SLOTS["progress"]] = 0
            while len(ran) < len(flying) or self._may_begin(len(stuck)):
                each = flying[len(ran)] if len(ran) < len(flying) else self._beside(thread)
                ran.append(each)
                self._call(each)
                if each.result == layout.YIELD:
                    stuck.append(each)
                elif each.result != layout.DONE:
                    thread.flying = [each, *stuck, *flying[len(ran) :]]
                    return
            thread.flying = stuck
            if stuck and not any(each.word("progress") for each in ran):
                stuck[0].context[SLOTS["fault_kind"]] = FAULT_CODES["deadlock"]
                stuck[0].result, stuck[0].alone = layout.FAULT, False
                return

    def _raise_errors(self, timed_out: bool) -> None:
        error = error_of(self, timed_out)
        if error is not None:
            raise error

    def _may_begin(self, in_flight: int) -> bool:
        """Whether another block can be begun beside those in flight."""
        return 0 < in_flight < self.in_flight and self.shared_words[1] < self.block_count

    def _beside(self, thread: OsThread) -> OsThread:
        """A context for another block in flight."""
        thread.beside.append(self._thread(1, thread.tracer))
        return thread.beside[-1]

    def _call(self, thread: OsThread) -> None:
        """Run blocks of one context until it is stuck or done."""
        drive = library.drive()
        thread.result = drive(thread.context.ctypes.data)
        while thread.result == layout.BAIL:
            thread.context[SLOTS["general"]] = self.code.general_address()
            thread.context[SLOTS["passes"]] = self.program.passes.ctypes.data
            thread.result = drive(thread.context.ctypes.data)

    @property
    def contexts(self) -> list[OsThread]:
        """The contexts of all threads, those of blocks in flight among them."""
        return [each for thread in self.threads for each in (thread, *thread.beside)]


def shared_memory_bytes(program: Program, launch: LaunchConfig) -> int:
    """Bytes of shared memory of a block: the static part, and the dynamic part behind it."""
    dynamic = launch.dynamic_shared_bytes
    return -(-program.static_shared_bytes // 16) * 16 + dynamic if dynamic else program.static_shared_bytes


@functools.lru_cache(maxsize=64)
def _thread_indices(block: tuple[int, int, int]) -> np.ndarray:
    """``threadIdx`` of every lane: shape (warps, 3, 32), int32. Not to be written to."""
    x, y, z = block
    linear = np.arange(-(-x * y * z // layout.WARP) * layout.WARP)
    axes = np.stack([linear % x, linear // x % y, linear // (x * y)]).astype(np.int32)
    return np.ascontiguousarray(axes.reshape(3, -1, layout.WARP).transpose(1, 0, 2))
