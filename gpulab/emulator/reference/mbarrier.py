"""Barriers in shared memory: arrivals that several phases count, and waits for a phase (PTX ISA 9.7.13.15)."""

from __future__ import annotations

import numpy as np

from gpulab.emulator import mbarrier as layout
from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.memory import locate
from gpulab.emulator.reference.values import LANES
from gpulab.emulator.reference.warp import Warp
from gpulab.ptx.opcodes import Form, Role
from gpulab.ptx.syntax import Instruction, Operand


def operate(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``mbarrier`` on its object: lane after lane, each on what the one before left."""
    instruction, form = _at(warp, index)
    position = next(number for number, role in enumerate(form.roles) if role.shape == "address")
    cells = {
        lane: place.view(np.uint64)
        for lane, place in locate(warp, tally, index, instruction.operands[position], on).items()
    }
    before = np.zeros(LANES, np.uint64)
    if form.mode in layout.WAITS:
        _wait(warp, index, cells, on)
        return
    arrivals, bytes_ = (_amount(warp, each) for each in layout.amounts(instruction, form))
    for lane, cell in cells.items():
        before[lane] = cell[0]
        after = _changed(form, int(cell[0]), int(arrivals[lane]), int(bytes_[lane]))
        if after is None:
            raise warp.fault("barrier/mbarrier", index, lane)
        cell[0] = after
    if form.mode in layout.ARRIVALS:
        warp.write(instruction.operands[0], before, "b64", on)


def _amount(warp: Warp, given: Operand | int) -> np.ndarray:
    return np.full(LANES, given) if isinstance(given, int) else warp.read(given, Role("c", "u32"))


def _changed(form: Form, word: int, arrivals: int, transactions: int) -> int | None:
    """The object after an operation of one lane; None if it must not be done."""
    if form.mode == "init":
        return _packed(arrivals, arrivals, 0, 0) if 0 < arrivals <= layout.MOST_ARRIVALS else None
    if not word >> layout.VALID_AT & 1:
        return None
    if form.mode == "inval":
        return 0
    waiting, expected = word & layout.MOST_ARRIVALS, word >> layout.EXPECTED_AT & layout.MOST_ARRIVALS
    phase, tx = word >> layout.PHASE_AT, word >> layout.TRANSACTIONS_AT
    tx = (tx - transactions if form.mode == "complete_tx" else tx + transactions) & layout.TRANSACTION_MASK
    if arrivals > waiting or (form.operation == "noComplete" and arrivals == waiting):
        return None
    waiting -= arrivals
    if form.mode == "arrive_drop":
        expected -= arrivals
    if waiting == 0 and tx == 0 and form.mode != "expect_tx":
        waiting, phase = expected, phase ^ 1
    return _packed(waiting, expected, tx, phase)


def _packed(waiting: int, expected: int, transactions: int, phase: int) -> int:
    word = waiting | expected << layout.EXPECTED_AT | transactions << layout.TRANSACTIONS_AT
    return word | 1 << layout.VALID_AT | phase << layout.PHASE_AT


def _wait(warp: Warp, index: int, cells: dict[int, np.ndarray], on: np.ndarray) -> None:
    """``test_wait`` and ``try_wait``, which never sleep here: whether the phase of a state, or parity, is complete."""
    instruction, form = _at(warp, index)
    given = warp.read(instruction.operands[2], form.roles[2])
    complete = np.zeros(LANES, bool)
    for lane, cell in cells.items():
        word = int(cell[0])
        if not word >> layout.VALID_AT & 1:
            raise warp.fault("barrier/mbarrier", index, lane)
        waited = int(given[lane]) & 1 if form.operation == "parity" else int(given[lane]) >> layout.PHASE_AT
        complete[lane] = word >> layout.PHASE_AT != waited
    warp.write(instruction.operands[0], complete, "pred", on)


def pending_count(warp: Warp, index: int, on: np.ndarray) -> None:
    """``mbarrier.pending_count``: arrivals that the phase waited for before the arrival that gave a state."""
    instruction, form = _at(warp, index)
    state = warp.read(instruction.operands[1], form.roles[1])
    warp.write(instruction.operands[0], (state & np.uint64(layout.MOST_ARRIVALS)).astype(np.uint32), "u32", on)


def _at(warp: Warp, index: int) -> tuple[Instruction, Form]:
    program = warp.launch.program
    return program.function.instructions[index], program.forms[index]
