"""The memory in which an OS thread of the compiled engine records a trace, and the trace of a launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpulab import trace
from gpulab.emulator.native.trace import STATE, STREAM
from gpulab.trace import EVENT, Merging, Stream, Trace, Tracing

_FIRST_PLACES = 1 << 10


class Tracer:
    """What one OS thread records: `native.trace.STATE` and the memory that it points to, about 2.5 MiB."""

    def __init__(self, tracing: Tracing) -> None:
        # No stream grows beyond the capacities that there are now.
        self._near = np.array(tracing.near, np.int64)
        self._events = {name: np.empty(trace.CAPACITY + 1, EVENT) for name in ("near", "far")}
        places = max(_FIRST_PLACES, 1 << (2 * trace.CAPACITY + 2).bit_length())
        self._indices = {name: np.empty(places, np.uint32) for name in ("near", "far")}
        near = self._near.ctypes.data
        words = {"next_near": near, "end_near": near + self._near.nbytes}
        for name, limit, merging in (("near", trace.ALL_LINES, trace.NEAR), ("far", tracing.far_limit, trace.FAR)):
            words |= {f"{name}.{key}": value for key, value in self._stream(name, limit, merging).items()}
        self.state = np.array([words[name] for name in STATE], np.int64)

    def _stream(self, name: str, limit: int, merging: Merging) -> dict[str, int]:
        index = self._indices[name]
        index[:_FIRST_PLACES] = 0
        return dict.fromkeys(STREAM, 0) | {
            "limit": limit,
            "capacity": trace.CAPACITY,
            "raw_capacity": trace.RAW_CAPACITY,
            "events": self._events[name].ctypes.data,
            "index": index.ctypes.data,
            "index_mask": _FIRST_PLACES - 1,
            "window_bits": merging.window_bits,
            "instruction_mask": -1 if merging.whole else 0,
            "tail_mask": -1 if merging.whole else -1 << 24,
        }

    def _word(self, name: str) -> int:
        return int(self.state[STATE.index(name)])

    def limit(self, name: str) -> int:
        """Below which the hash of a line is whose accesses were all recorded in a stream, ``near`` or ``far``."""
        return self._word(f"{name}.limit")

    def events(self, name: str) -> np.ndarray:
        """The events of a stream."""
        return self._events[name][: self._word(f"{name}.used")]


def trace_of(tracers: Sequence[Tracer], tracing: Tracing, ran: np.ndarray | None) -> Trace:
    """The trace of a launch from what its threads recorded; `ran` are the blocks that ran, None for all."""

    def stream(name: str, blocks: np.ndarray | None) -> Stream:
        return trace.settle([each.events(name) for each in tracers], min(each.limit(name) for each in tracers), blocks)

    near = np.array(tracing.near, np.int64)
    return Trace(stream("near", near if ran is None else near[np.isin(near, ran)]), stream("far", ran))
