"""When each block runs, on a clock that counts the instructions of a warp.

Blocks are given out in order. An SM that has room for so many begins the next one when one of them ends. The warps of
the blocks on an SM take turns, so that all of them are about as far as each other at any time.
"""

from __future__ import annotations

import heapq

import numpy as np


def starts(durations: np.ndarray, slots: int) -> np.ndarray:
    """When each block of an SM begins, int64.

    Parameters
    ----------
    durations : numpy.ndarray
        Instructions of the longest warp of each block, in the order in which the blocks begin.
    slots : int
        Blocks that the SM holds at once.
    """
    found = np.zeros(len(durations), np.int64)
    free = [0] * max(1, slots)
    for number, duration in enumerate(durations.tolist()):
        found[number] = heapq.heappop(free)
        heapq.heappush(free, int(found[number]) + duration)
    return found


def clocks_on_sms(events: np.ndarray, sms: np.ndarray, slots: int) -> np.ndarray:
    """The time of each event on the clock of its SM, int64.

    Parameters
    ----------
    events : numpy.ndarray
        Of dtype `gpulab.trace.EVENT`, ordered by block.
    sms : numpy.ndarray
        The SM that each event's block ran on.
    slots : int
        Blocks that an SM holds at once.
    """
    if not len(events):
        return np.zeros(0, np.int64)
    begins = np.flatnonzero(np.diff(events["block"], prepend=-1))
    durations = np.maximum.reduceat(events["time"], begins).astype(np.int64) + 1
    of_block = np.zeros(len(begins), np.int64)
    for sm in np.unique(sms):
        mine = sms[begins] == sm
        of_block[mine] = starts(durations[mine], slots)
    return np.repeat(of_block, np.diff(begins, append=len(events))) + events["time"]


def clocks_in_waves(turns: np.ndarray, times: np.ndarray, resident: int, duration: float) -> np.ndarray:
    """The time of each event on the clock of the GPU, int64: all SMs alike, one wave of blocks after the other.

    Parameters
    ----------
    turns : numpy.ndarray
        How many blocks of the grid began before the event's own.
    times : numpy.ndarray
        Instructions that its warp executed before.
    resident : int
        Blocks of a wave.
    duration : float
        Instructions that a warp executes, on average.
    """
    waves = turns.astype(np.int64) // max(1, resident)
    return (waves * duration).astype(np.int64) + times
