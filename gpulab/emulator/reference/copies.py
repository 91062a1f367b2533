"""Asynchronous copies from global into shared memory (PTX ISA 9.7.9.25, `cp.async`).

The bytes are copied when the instruction is issued, which hardware may put off until the wait for its group. So a kernel
that reads before it waits gets the right values here and perhaps not on a GPU; only the check can tell.
"""

from __future__ import annotations

import numpy as np

from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.memory import fault, place
from gpulab.emulator.reference.values import LANES
from gpulab.emulator.reference.warp import Warp
from gpulab.ptx.opcodes import Form, Role
from gpulab.ptx.syntax import Address, Instruction, Register


def source_bytes(warp: Warp, instruction: Instruction, form: Form) -> np.ndarray:
    """How many bytes each lane reads; the rest of what it writes is zero."""
    size = form.access_bytes
    if form.roles[3].name != "e":
        return np.full(LANES, size)
    given = instruction.operands[3]
    if isinstance(given, Register) and warp.launch.program.function.registers[given.name] == "pred":
        return np.where(warp.read(given, Role("e", "pred")), 0, size)
    return np.minimum(warp.read(given, Role("e", "u32")).astype(np.int64), size)


def copy(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``cp.async``: check what is read, then what is written, then copy lane after lane.

    Lanes that read all their bytes are checked before those that read a part of them, whose bytes are checked one by one.
    """
    program = warp.launch.program
    instruction, form = program.function.instructions[index], program.forms[index]
    target, source = instruction.operands[:2]
    assert isinstance(target, Address) and isinstance(source, Address)
    size, lengths = form.access_bytes, source_bytes(warp, instruction, form)
    sources, targets = warp.addresses(source), warp.addresses(target)
    lanes = np.flatnonzero(on).tolist()
    read = {lane: place(warp, index, "global", int(sources[lane]), lane) for lane in lanes if lengths[lane] == size}
    read |= _partly_read(warp, index, sources, {lane: int(lengths[lane]) for lane in lanes if 0 < lengths[lane] < size})
    reading = np.array(sorted(read), np.int64)
    tally.request(index, form, "global", sources[reading], reading)
    written = {lane: place(warp, index, "shared", int(targets[lane]), lane, store=True) for lane in lanes}
    tally.copied(index, form, targets[lanes], np.array(lanes))
    nothing = np.zeros(0, np.uint8)
    contents = {lane: read.get(lane, nothing).copy() for lane in lanes}
    for lane in lanes:
        written[lane][:] = 0
        written[lane][: len(contents[lane])] = contents[lane]


def _partly_read(warp: Warp, index: int, sources: np.ndarray, lengths: dict[int, int]) -> dict[int, np.ndarray]:
    size = warp.launch.program.forms[index].access_bytes
    for lane in lengths:
        if sources[lane] % size:
            raise fault(warp, "misaligned", index, lane, int(sources[lane]))
    found = {lane: np.zeros(length, np.uint8) for lane, length in lengths.items()}
    for number in range(max(lengths.values(), default=0)):
        for lane, length in lengths.items():
            if number < length:
                found[lane][number] = place(warp, index, "global", int(sources[lane]) + number, lane, 1)[0]
    return found
