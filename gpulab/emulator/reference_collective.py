"""Operations across the lanes of a warp: shuffles, votes, matches, reductions (PTX ISA 9.7.9 and 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from gpulab.emulator.reference_values import DTYPES, LANES, wrap
from gpulab.emulator.reference_warp import LANE_NUMBERS, Warp
from gpulab.ptx.opcodes import Form
from gpulab.ptx.syntax import Instruction


def as_mask(lanes: np.ndarray) -> int:
    """Lanes as the bits of a mask, lane 0 lowest."""
    return sum(1 << lane for lane in np.flatnonzero(lanes).tolist())


def _at(warp: Warp, index: int) -> tuple[Instruction, Form]:
    program = warp.launch.program
    return program.function.instructions[index], program.forms[index]


def members(warp: Warp, index: int, position: int, on: np.ndarray) -> list[list[int]]:
    """For each lane the lanes that take part with it: those of its member mask that are here.

    Raises
    ------
    KernelFault
        If a lane is not in its own mask, or the mask names a lane that is alive but not here.
    """
    instruction, form = _at(warp, index)
    masks = warp.read(instruction.operands[position], form.roles[position]).tolist()
    absent, here = as_mask(warp.live & ~on), as_mask(on)
    for lane in np.flatnonzero(on).tolist():
        if not masks[lane] >> lane & 1 or masks[lane] & absent:
            raise warp.fault("warp-sync", index, lane)
    return [[other for other in range(LANES) if mask & here & 1 << other] for mask in masks]


def synchronize(warp: Warp, index: int, on: np.ndarray) -> None:
    """``bar.warp.sync``: nothing but the check, as the lanes of a warp run in lockstep."""
    members(warp, index, 0, on)


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
    members(warp, index, 4, on)
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
