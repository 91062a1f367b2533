"""Operations across the lanes of a warp: shuffles, votes, matches, reductions (PTX ISA 9.7.9 and 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from gpulab.emulator.analysis.meeting import is_aligned, is_warp_barrier, mask_position, stuck_kind
from gpulab.emulator.reference.values import DTYPES, LANES, wrap
from gpulab.emulator.reference.waiting import missed
from gpulab.emulator.reference.warp import LANE_NUMBERS, Warp
from gpulab.ptx.opcodes import Form
from gpulab.ptx.syntax import Instruction


def as_mask(lanes: np.ndarray) -> int:
    """Lanes as the bits of a mask, lane 0 lowest."""
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())


def _at(warp: Warp, index: int) -> tuple[Instruction, Form]:
    program = warp.launch.program
    return program.function.instructions[index], program.forms[index]


def meet(warp: Warp, index: int) -> None:
    """Where lanes wait for each other: those that still have to wait are blocked, the active ones may go on.

    Raises
    ------
    KernelFault
        If lanes can never meet: at a barrier some of the warp are elsewhere; a lane is not in its own member mask; the
        mask names a lane whose guard is false.
    """
    here = warp.blocked & (warp.at == warp.at[warp.active][0])
    warp.active = warp.active | here
    warp.blocked &= ~here
    instruction, form = _at(warp, index)
    if form.kind != "barrier":
        _meet_members(warp, index)
    elif is_aligned(instruction):
        _meet_all(warp, index)


def _meet_all(warp: Warp, index: int) -> None:
    """An aligned barrier: every live lane of the warp must be here, or wait for something first."""
    on = warp.guard(_at(warp, index)[0])
    if not on.any():
        return
    absent = warp.live & ~on
    if (absent & (warp.ready | warp.active)).any():
        raise warp.fault("barrier", index, int(np.flatnonzero(on)[0]))
    _block(warp, warp.active & absent.any(), [as_mask(absent)] * LANES)


def _meet_members(warp: Warp, index: int) -> None:
    """A ``.sync`` operation: a lane goes on when all live lanes of its member mask are here."""
    instruction, form = _at(warp, index)
    on = warp.guard(instruction)
    position = mask_position(form)
    masks = [as_mask(warp.live)] * LANES if position is None else _masks(warp, index, position)
    elsewhere = _others_at_warp_barriers(warp) if is_warp_barrier(form) else np.zeros(LANES, bool)
    absent, never = as_mask(warp.live & ~on & ~elsewhere), as_mask(warp.active & ~on)
    free = warp.granted & warp.active
    warp.granted &= ~free
    for lane in np.flatnonzero(on & ~free).tolist():
        if not masks[lane] >> lane & 1 or masks[lane] & never:
            raise warp.fault(stuck_kind(form), index, lane)
    wanted = [mask & absent for mask in masks]
    wait = on & ~free & np.array(wanted, bool)
    _block(warp, wait, wanted)
    met = np.array(
        [any(masks[lane] >> other & 1 for lane in np.flatnonzero(on & ~free & ~wait)) for other in range(LANES)]
    )
    partners = met & elsewhere
    warp.blocked &= ~partners
    warp.granted |= partners


def _masks(warp: Warp, index: int, position: int) -> list[int]:
    instruction, form = _at(warp, index)
    return warp.read(instruction.operands[position], form.roles[position]).tolist()


def _others_at_warp_barriers(warp: Warp) -> np.ndarray:
    """Blocked lanes that wait at a ``bar.warp.sync``."""
    program = warp.launch.program
    barriers = [is_warp_barrier(program.forms[block.start]) for block in program.graph.blocks]
    return warp.blocked & np.array(barriers)[warp.at]


def _block(warp: Warp, lanes: np.ndarray, wanted: list[int]) -> None:
    """Let lanes wait for those that they want."""
    warp.active = warp.active & ~lanes
    warp.blocked |= lanes
    warp.wanted = np.where(lanes, wanted, warp.wanted)


def check_passing(warp: Warp, rank: int) -> None:
    """Lanes that others wait for enter a block: a fault if they have passed the place, and cannot come to it any more."""
    program = warp.launch.program
    active = as_mask(warp.active)
    waiting = [
        (int(warp.at[lane]), lane)
        for lane in np.flatnonzero(warp.blocked).tolist()
        if warp.wanted[lane] & active and program.passes[warp.at[lane], rank]
    ]
    if waiting:
        raise missed(warp, min(waiting)[1])


def members(warp: Warp, index: int, position: int, on: np.ndarray) -> list[list[int]]:
    """For each lane the lanes that take part with it: those of its member mask that are here."""
    here = as_mask(on)
    return [[other for other in range(LANES) if mask & here & 1 << other] for mask in _masks(warp, index, position)]


def active_mask(warp: Warp, index: int, on: np.ndarray) -> None:
    """``activemask``."""
    instruction, _ = _at(warp, index)
    warp.write(instruction.operands[0], np.full(LANES, as_mask(on), np.uint32), "b32", on)


def vote(warp: Warp, index: int, on: np.ndarray) -> None:
    """``vote.sync``: all, any, uni, or the mask of lanes whose predicate holds."""
    instruction, form = _at(warp, index)
    holds = warp.read(instruction.operands[1], form.roles[1]).tolist()
    groups = members(warp, index, 2, on)
    if form.mode == "ballot":
        results = wrap([sum(1 << lane for lane in group if holds[lane]) for group in groups], DTYPES["b32"])
    else:
        decide = {"all": all, "any": any, "uni": lambda values: len(set(values)) <= 1}[form.mode or ""]
        results = np.array([decide([holds[lane] for lane in group]) for group in groups])
    warp.write(instruction.operands[0], results, form.type or "", on)


def match(warp: Warp, index: int, on: np.ndarray) -> None:
    """``match.sync``: the members with the same value; for ``.all`` none unless all of them have it."""
    instruction, form = _at(warp, index)
    values = warp.read(instruction.operands[1], form.roles[1]).tolist()
    groups = members(warp, index, 2, on)
    same = [[other for other in group if values[other] == values[lane]] for lane, group in enumerate(groups)]
    every = np.array([mine == group for mine, group in zip(same, groups, strict=True)])
    found = wrap([sum(1 << other for other in group) for group in same], DTYPES["b32"])
    if form.mode == "all":
        found = np.where(every, found, np.uint32(0))
    warp.write_pair(instruction.operands[0], found, "b32", every, on)


_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def reduce_members(warp: Warp, index: int, on: np.ndarray) -> None:
    """``redux.sync``: one operation over the values of all members."""
    instruction, form = _at(warp, index)
    values = warp.read(instruction.operands[1], form.roles[1]).tolist()
    groups = members(warp, index, 2, on)
    combine = _REDUCTIONS[form.operation or ""]
    results = [reduce(combine, [values[lane] for lane in group]) if group else 0 for group in groups]
    warp.write(instruction.operands[0], wrap(results, DTYPES[form.type or ""]), form.type or "", on)


def elect(warp: Warp, index: int, on: np.ndarray) -> None:
    """``elect.sync``: the lowest member is the leader."""
    instruction, _ = _at(warp, index)
    leaders = np.array([min(group, default=0) for group in members(warp, index, 1, on)], np.uint32)
    warp.write_pair(instruction.operands[0], leaders, "b32", leaders == LANE_NUMBERS, on)


def shuffle(warp: Warp, index: int, on: np.ndarray) -> None:
    """``shfl.sync``: each lane takes the value of another one.

    Lanes outside the segment, and lanes that take no part, can't be read: a lane then gets its own value. The predicate
    tells only whether the source lies in the segment.
    """
    instruction, form = _at(warp, index)
    values, distances, clamps = (warp.read(instruction.operands[i], form.roles[i]).tolist() for i in range(1, 4))
    results, inside = [], []
    for lane in range(LANES):
        source, valid = source_lane(form.mode or "", lane, distances[lane], clamps[lane])
        results.append(values[source] if valid and on[source] else values[lane])
        inside.append(valid)
    warp.write_pair(instruction.operands[0], wrap(results, DTYPES["b32"]), "b32", np.array(inside), on)


def source_lane(mode: str, lane: int, distance: int, clamp: int) -> tuple[int, bool]:
    """The lane that a lane reads from, and whether it lies in the lane's segment (PTX ISA, shfl.sync)."""
    distance, bound, segment = distance & 31, clamp & 31, clamp >> 8 & 31
    lowest = lane & segment
    limit = lowest | (bound & ~segment)
    if mode == "up":
        source = lane - distance
        return source, source >= limit
    source = {"down": lane + distance, "bfly": lane ^ distance, "idx": lowest | (distance & ~segment)}[mode]
    return source, source <= limit
