"""`Trace`: a sample of the lines of global memory that a launch accessed: when, and by which instruction.

A *line* (128 bytes) is *sampled* if its hash is below a limit: either all accesses to a line are known or none. There are
two samples. The *near* one has a few blocks alone, such as would share an SM, and many lines: it is for the L1 cache. The
*far* one has all blocks and fewer lines: it is for what all SMs share.

An *event* is what one request did to one line. Events that differ little are merged into one, by what `Merging` says. If
more are left than `CAPACITY`, or they stand for more than `RAW_CAPACITY`, the limit is halved until they are not. All
this follows from what the blocks did alone, not from how they were spread over threads, and both engines of the emulator
do it alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

LINE_BITS = 7
SECTOR_BITS = 5
HASH_FACTOR = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: the lines that it samples lie evenly in any array (Knuth, volume 3, 6.4)."""

ALL_LINES = 1 << 32
"""The limit with which every line is sampled."""

CAPACITY = 1 << 15
"""Events of a sample at most."""

RAW_CAPACITY = 1 << 17
"""Requests to lines that the events of a sample stand for at most: it bounds the time that it takes to record them."""

FAR_LINES = 1 << 13
"""Lines with which the far sample begins at most."""

LOAD, STORE, ATOMIC = 0, 1, 2

EVENT = np.dtype(
    [
        ("line", "u8"),  # address divided by 128
        ("block", "i8"),  # linear number
        ("time", "u4"),  # instructions that the warp had executed before
        ("instruction", "i4"),
        ("count", "u4"),  # requests that were merged into this event
        ("warp", "u2"),  # in its block
        ("sectors", "u1"),  # mask of the line's four sectors
        ("kind", "u1"),  # LOAD, STORE or ATOMIC
    ]
)
ARRAY = np.dtype(
    [
        ("line", "u8"),  # its first
        ("loaded", "i8"),  # different sectors that the traced blocks load
        ("stored", "i8"),
        ("grid_loaded", "i8"),  # and all blocks of the grid, extrapolated
        ("grid_stored", "i8"),
    ]
)
_ORDER = ("block", "time", "warp", "instruction", "line", "sectors")


@dataclass(frozen=True, slots=True)
class Merging:
    """Which events of one sample become one: those of the same block, line and window of time, and by far the same kind.

    A merged event has the sectors of all, and the time, instruction and warp of the first: with the least time, of those
    with the least instruction, of those in the lowest warp.

    Attributes
    ----------
    window_bits : int
        A window of time is so many bits of instructions.
    whole : bool
        Whether events must be of the same instruction and warp, and have the same sectors, as well.
    """

    window_bits: int
    whole: bool


NEAR = Merging(window_bits=6, whole=True)
FAR = Merging(window_bits=8, whole=False)


@dataclass(frozen=True, slots=True)
class Tracing:
    """What is to be traced.

    Attributes
    ----------
    near : tuple of int
        Linear numbers of the near blocks, ascending.
    lines : int
        Lines of all arrays of the launch together; with more than `FAR_LINES` the far sample begins with a part of them.
    """

    near: tuple[int, ...] = ()
    lines: int = 0

    @property
    def far_limit(self) -> int:
        """With which the far sample begins."""
        return ALL_LINES >> (max(-(-self.lines // FAR_LINES), 1) - 1).bit_length()


@dataclass(frozen=True)
class Stream:
    """The events of one sample.

    Attributes
    ----------
    events : numpy.ndarray
        Dtype `EVENT`, merged, ordered by block, time, warp, instruction, line and sectors.
    limit : int
        A line is in the sample if its hash is below.
    blocks : numpy.ndarray or None
        Linear numbers of the blocks it covers, ascending, int64; None for all of the launch.
    """

    events: np.ndarray
    limit: int
    blocks: np.ndarray | None = None

    @property
    def rate(self) -> float:
        """Share of all lines that are in the sample, 0 to 1."""
        return self.limit / ALL_LINES

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (
            self.limit == other.limit
            and np.array_equal(self.events, other.events)
            and (self.blocks is None) == (other.blocks is None)
            and (self.blocks is None or np.array_equal(self.blocks, other.blocks))
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Trace:
    """Both samples of one launch.

    Attributes
    ----------
    near, far : Stream
    near_sms : int
        Multiprocessors that the near blocks share: 2 that they go to in turn, or 1.
    arrays : numpy.ndarray or None
        Dtype `ARRAY`, in order of their lines: of a sampled launch, how many sectors it touches in each array.
    made : dict
        What the models made of it, by keys of theirs: kept here so that it is there for the next GPU that is asked about.
    """

    near: Stream
    far: Stream
    near_sms: int = 2
    arrays: np.ndarray | None = field(default=None, compare=False)
    made: dict[object, object] = field(default_factory=dict, compare=False, repr=False)


def line_hash(lines: np.ndarray) -> np.ndarray:
    """The hash of each line, below 2**32, uint64."""
    return np.asarray(lines).astype(np.uint64) * np.uint64(HASH_FACTOR) >> np.uint64(32)


def near_blocks(blocks: Sequence[int] | np.ndarray, sms: int, blocks_per_sm: int) -> tuple[int, ...]:
    """Those of some blocks that share one of two SMs, of the first two waves.

    Parameters
    ----------
    blocks : sequence of int
        Linear numbers, in the order in which they begin.
    sms : int
        Multiprocessors, to which the blocks go in turn.
    blocks_per_sm : int
        Blocks that one of them holds at once.
    """
    turns = np.arange(min(len(blocks), 2 * sms * blocks_per_sm))
    chosen = turns[np.isin(turns % sms, (0, sms // 2))]
    return tuple(int(blocks[turn]) for turn in chosen.tolist())


def settle(parts: Iterable[np.ndarray], limit: int, blocks: np.ndarray | None = None) -> Stream:
    """One sample from the events of several threads, halved until it is small enough.

    Parameters
    ----------
    parts : iterable of numpy.ndarray
        Merged events, dtype `EVENT`, complete for all lines whose hash is below `limit`; each block is in one part alone.
    limit : int
    blocks : numpy.ndarray, optional
        As in `Stream`.
    """
    events = np.concatenate([np.zeros(0, EVENT), *parts])
    hashes = line_hash(events["line"])
    while True:
        kept = events[hashes < np.uint64(limit)]
        if len(kept) <= CAPACITY and kept["count"].sum(dtype=np.int64) <= RAW_CAPACITY:
            order = np.lexsort([kept[name] for name in reversed(_ORDER)])
            return Stream(kept[order], limit, blocks)
        limit //= 2


def joined(traces: Sequence[Trace]) -> Trace:
    """The trace of several launches of different blocks as if they were one."""

    def join(streams: list[Stream]) -> Stream:
        known = [each.blocks for each in streams if each.blocks is not None]
        blocks = np.sort(np.concatenate(known)) if len(known) == len(streams) else None
        return settle([each.events for each in streams], min(each.limit for each in streams), blocks)

    return Trace(join([each.near for each in traces]), join([each.far for each in traces]))


@dataclass
class Recorder:
    """Makes the trace of a launch, plainly and slowly.

    Attributes
    ----------
    tracing : Tracing
    """

    tracing: Tracing
    _near: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    _far: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def request(self, sectors: Iterable[int], *, kind: int, block: int, warp: int, instruction: int, time: int) -> None:
        """Record a request.

        Parameters
        ----------
        sectors : iterable of int
            Addresses divided by 32, each once.
        kind : int
            `LOAD`, `STORE` or `ATOMIC`.
        block, warp, instruction, time : int
            As in `EVENT`.
        """
        masks: dict[int, int] = {}
        for sector in sectors:
            line = sector >> LINE_BITS - SECTOR_BITS
            masks[line] = masks.get(line, 0) | 1 << (sector & 3)
        for line, mask in masks.items():
            mine = (time, instruction, warp, mask, kind)
            if block in self.tracing.near:
                _merge(self._near, NEAR, block, line, mine)
            if int(line_hash(np.array([line]))[0]) < self.tracing.far_limit:
                _merge(self._far, FAR, block, line, mine)

    def finish(self, ran: Sequence[int] | np.ndarray | None = None) -> Trace:
        """The trace.

        Parameters
        ----------
        ran : sequence of int, optional
            Numbers of the blocks that ran; all of the launch if None.
        """
        near = np.array(self.tracing.near, np.int64)
        chosen = None if ran is None else np.array(ran, np.int64)
        return Trace(
            settle([_events(self._near)], ALL_LINES, near if chosen is None else near[np.isin(near, chosen)]),
            settle([_events(self._far)], self.tracing.far_limit, chosen),
        )


def _merge(
    found: dict[tuple[int, ...], list[int]], merging: Merging, block: int, line: int, event: tuple[int, ...]
) -> None:
    time, instruction, warp, mask, kind = event
    key = (block, line, time >> merging.window_bits, kind, *((instruction, warp, mask) if merging.whole else ()))
    first, count = [time, instruction, warp], 1
    if key in found:
        *before, before_mask, before_count = found[key]
        first, mask, count = min(before, first), mask | before_mask, 1 + before_count
    found[key] = [*first, mask, count]


def _events(found: dict[tuple[int, ...], list[int]]) -> np.ndarray:
    rows = [
        (key[1], key[0], time, instruction, count, warp, mask, key[3])
        for key, (time, instruction, warp, mask, count) in found.items()
    ]
    return np.array(rows, EVENT)
