"""What a check run found, read out of the native table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.emulator.checking.layout import (
    ENTRY,
    ENTRY_WORDS,
    KEY_OTHER_SHIFT,
    KEY_SITE_SHIFT,
    KIND_BITS,
    KINDS,
    SEGMENT_BYTES,
    THREAD_BITS,
    TIME_SHIFT,
)

_NAMES = {code: name for name, code in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that happened at one instruction, or between two.

    Attributes
    ----------
    kind : str
        A key of `layout.KINDS`.
    site, other : int
        Instructions; of races the earlier access is `other`, of overflows the arithmetic.
    count : int
        Threads that did it.
    block, thread : int
        Linear numbers of the first.
    address : int
        What it accessed.
    other_block, other_thread : int
        Of a race: who did the earlier access.
    """

    kind: str
    site: int
    other: int
    count: int
    block: int
    thread: int
    address: int
    other_block: int
    other_thread: int


def read(entries: np.ndarray, count: int, segments: np.ndarray) -> list[Finding]:
    """The findings in the order in which they were met.

    Parameters
    ----------
    entries : numpy.ndarray
        The table, int64.
    count : int
        Entries in use.
    segments : numpy.ndarray
        The segments in use, int64, one row each.
    """
    found = []
    for entry in entries.reshape(-1, ENTRY_WORDS)[:count]:
        key, record = int(entry[ENTRY["key"]]), int(entry[ENTRY["record"]]) & (1 << 64) - 1
        block = int(entry[ENTRY["block"]])
        turn = int(np.searchsorted(segments[:, 0], record >> TIME_SHIFT, "right")) - 1
        found.append(
            Finding(
                kind=_NAMES[key & (1 << KIND_BITS) - 1],
                site=key >> KEY_SITE_SHIFT & (1 << KEY_OTHER_SHIFT - KEY_SITE_SHIFT) - 1,
                other=key >> KEY_OTHER_SHIFT,
                count=int(entry[ENTRY["count"]]),
                block=block,
                thread=int(entry[ENTRY["thread"]]),
                address=int(entry[ENTRY["address"]]) & (1 << 64) - 1,
                other_block=block if entry[ENTRY["same_block"]] else int(segments[turn, 1]) if turn >= 0 else block,
                other_thread=record & (1 << THREAD_BITS) - 1,
            )
        )
    return found


SEGMENT_WORDS = SEGMENT_BYTES // 8
