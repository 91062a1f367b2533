"""What a deadlock looks like, said to a learner: where every warp stands that waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpulab.emulator.faults import make_fault, place, position
from gpulab.emulator.program import Program
from gpulab.errors import KernelFault
from gpulab.launch import LaunchConfig
from gpulab.ptx.cfg import meets

_MOST_LINES = 8
_BARRIER_ADVICE = "Let every thread of the block pass the same barriers in the same order."
_LOOP_ADVICE = (
    "The threads in loops wait for values that no thread can write any more: look for a flag that is never set, a lock "
    "that is never released, and locks taken in different orders."
)
_GRID_ADVICE = (
    "{} more blocks can't begin before one of these ends, as the GPU holds no more at once: launch so few blocks that all "
    "are in flight together."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Lanes of a warp that wait at one place.

    Attributes
    ----------
    block, warp : int
        Linear numbers.
    instruction : int
    barrier : tuple of (int, int, int or None), optional
        The barrier's number, threads that arrived, and threads for which it opens (None: all); None in a loop.
    """

    block: int
    warp: int
    instruction: int
    barrier: tuple[int, int, int | None] | None


def deadlock(program: Program, launch: LaunchConfig, standings: Sequence[Standing], not_begun: int) -> KernelFault:
    """Make the fault of a launch in which no warp in flight can go on.

    Parameters
    ----------
    standings : sequence of Standing
        All that wait, by block and warp.
    not_begun : int
        Blocks that have not been begun.
    """
    first = standings[0]
    advice = _BARRIER_ADVICE if all(each.barrier for each in standings) else _LOOP_ADVICE
    if not_begun and advice is _LOOP_ADVICE:
        advice = f"{_GRID_ADVICE.format(not_begun)} {advice}"
    message = f"no warp can go on. Waiting: {who_waits(program, launch, standings)}. {advice}"
    return make_fault(program, launch, "deadlock", first.instruction, first.block, None, message)


def who_waits(program: Program, launch: LaunchConfig, standings: Sequence[Standing]) -> str:
    """Where warps wait, those at one place together."""
    lines = list(_lines(program, launch, standings))
    more = f"; and more at {len(lines) - _MOST_LINES} other places" if len(lines) > _MOST_LINES else ""
    return "; ".join(lines[:_MOST_LINES]) + more


def _lines(program: Program, launch: LaunchConfig, standings: Sequence[Standing]) -> Iterator[str]:
    """Who waits at each place, in a few words."""
    places: dict[tuple[int, str], list[Standing]] = {}
    for each in standings:
        places.setdefault((each.instruction, _reason(program, each)), []).append(each)
    for (instruction, reason), found in places.items():
        blocks = sorted({each.block for each in found})
        warps = _numbers(sorted({each.warp for each in found if each.block == blocks[0]}))
        others = f" and {len(blocks) - 1} more block{'s' * (len(blocks) > 2)}" if len(blocks) > 1 else ""
        who = f"{warps} of block {position(blocks[0], launch.grid)}{others}"
        yield f"{who} at {place(program, instruction)} ({reason})"


def _reason(program: Program, standing: Standing) -> str:
    if standing.barrier:
        return _barrier_words(*standing.barrier)
    return "for other lanes of the warp" if meets(program.forms[standing.instruction]) else "in a loop"


def _barrier_words(number: int, arrived: int, expected: int | None) -> str:
    return f"barrier {number}, {arrived} of {'all' if expected is None else expected} threads arrived"


def _numbers(warps: list[int]) -> str:
    """Warp numbers with their runs joined."""
    runs = []
    for _, run in groupby(enumerate(warps), lambda pair: pair[1] - pair[0]):
        members = [warp for _, warp in run]
        runs.append(f"{members[0]}" if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return f"warp{'s' if len(warps) > 1 else ''} {', '.join(runs)}"
