"""What a deadlock looks like, said to a learner: where every warp stands that waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpulab.emulator.faults import explained, make_fault, place, position
from gpulab.emulator.program import Program
from gpulab.errors import KernelFault
from gpulab.launch import LaunchConfig
from gpulab.ptx.cfg import meets

_MOST_LINES = 8
_LOOP, _LANES, _MBARRIER = "in a loop", "for other lanes of the warp", "for a phase of a barrier in shared memory"
_BARRIER_ADVICE = "Let every thread of the block pass the same barriers in the same order."
_LOOP_ADVICE = (
    "The threads in loops wait for values that no thread can write any more: look for a flag that is never set, a lock "
    "that is never released, and locks taken in different orders."
)
_LANES_ADVICE = (
    "Lanes that wait for others of their warp never meet those that wait at a barrier: let all lanes that a mask names come "
    "to the same operations in the same order."
)
_MBARRIER_ADVICE = (
    "A barrier in shared memory opens when as many threads have arrived as it was initialized for: look whether fewer arrive, "
    "and whether the right phase is waited for."
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
    waits : bool
        False for lanes that are on their way.
    """

    block: int
    warp: int
    instruction: int
    barrier: tuple[int, int, int | None] | None
    waits: bool = True


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
    advice = _advice(program, standings)
    if not_begun and any(_reason(program, each) == _LOOP for each in standings):
        advice = f"{_GRID_ADVICE.format(not_begun)} {advice}"
    message = f"no warp can go on. Waiting: {who_waits(program, launch, standings)}. {advice}"
    return make_fault(program, launch, "deadlock", first.instruction, first.block, None, message)


def _advice(program: Program, standings: Sequence[Standing]) -> str:
    reasons = {_reason(program, each) for each in standings if not each.barrier}
    if not reasons:
        return _BARRIER_ADVICE
    if _MBARRIER in reasons:
        return _MBARRIER_ADVICE
    return _LOOP_ADVICE if _LOOP in reasons else _LANES_ADVICE


def absent(
    program: Program, launch: LaunchConfig, kind: str, block: int, thread: int, at: int, lanes: Mapping[int, Standing]
) -> KernelFault:
    """Make the fault of a lane that waits for others of its warp in vain.

    Parameters
    ----------
    kind : str
        See `gpulab.emulator.analysis.meeting.stuck_kind`.
    block, thread : int
        Linear numbers of the lane that waits.
    at : int
        The instruction where it waits.
    lanes : mapping of int to Standing
        Where those stand that it waits for.
    """
    message = explained(kind, _where_lanes_stand(program, lanes)) if lanes and kind != "barrier" else ""
    return make_fault(program, launch, kind, at, block, thread, message)


def _where_lanes_stand(program: Program, lanes: Mapping[int, Standing]) -> str:
    places: dict[str, list[int]] = {}
    for lane, standing in sorted(lanes.items()):
        reason = f" ({_reason(program, standing)})" if standing.waits else ""
        places.setdefault(f"at {place(program, standing.instruction)}{reason}", []).append(lane)
    return "; ".join(f"{_numbers('lane', found)} {where}" for where, found in places.items())


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
        warps = _numbers("warp", sorted({each.warp for each in found if each.block == blocks[0]}))
        others = f" and {len(blocks) - 1} more block{'s' * (len(blocks) > 2)}" if len(blocks) > 1 else ""
        who = f"{warps} of block {position(blocks[0], launch.grid)}{others}"
        yield f"{who} at {place(program, instruction)} ({reason})"


def _reason(program: Program, standing: Standing) -> str:
    if standing.barrier:
        return _barrier_words(*standing.barrier)
    form = program.forms[standing.instruction]
    if form.opcode == "mbarrier":
        return _MBARRIER
    return _LANES if meets(form) else _LOOP


def _barrier_words(number: int, arrived: int, expected: int | None) -> str:
    return f"barrier {number}, {arrived} of {'all' if expected is None else expected} threads arrived"


def _numbers(what: str, numbers: list[int]) -> str:
    """Numbers of warps or lanes, their runs joined."""
    runs = []
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        runs.append(f"{members[0]}" if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return f"{what}{'s' if len(numbers) > 1 else ''} {', '.join(runs)}"
