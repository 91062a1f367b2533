"""The interpreter that defines what PTX means: one warp instruction at a time, obvious and slow.

`reference.schedule` says who runs when; here is what one basic block of a warp does, instruction by instruction, with the
lanes that are active.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpulab.counters import Counters
from gpulab.emulator.analysis.touched import Touched
from gpulab.emulator.builtins import BuiltInCall, CallError
from gpulab.emulator.faults import time_limit_error
from gpulab.emulator.memory import Memory
from gpulab.emulator.program import Program, RunOptions
from gpulab.emulator.reference import (
    collective,
    compare,
    convert,
    copies,
    floats,
    halves,
    integers,
    matrix,
    packed,
)
from gpulab.emulator.reference import mbarrier as mbarriers
from gpulab.emulator.reference import memory as memory_operations
from gpulab.emulator.reference.barrier import arrive
from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.schedule import Schedule, move_on
from gpulab.emulator.reference.values import LANES, pure_function
from gpulab.emulator.reference.warp import EXITED, Launch, Warp
from gpulab.errors import UnsupportedInstruction
from gpulab.launch import LaunchConfig
from gpulab.ptx.cfg import Block, branch_targets
from gpulab.ptx.opcodes import CARRY, Form
from gpulab.ptx.syntax import Group, Instruction, Register
from gpulab.ptx.types import TYPE_BYTES

# Imported for what they enter into the table of pure functions.
FAMILIES = (integers, floats, halves, compare, convert, packed)


def execute(
    program: Program,
    launch: LaunchConfig,
    parameters: bytes,
    memory: Memory,
    symbols: dict[str, int],
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen, so it can be shared)
) -> Counters:
    """Run a kernel; see `gpulab.emulator.execute`."""
    program.prepare(memory)
    names = symbols | program.shared | program.local | {name: at for name, (at, _) in program.parameters.items()}
    shared = Launch(program, launch, np.frombuffer(parameters, np.uint8), memory, names, options.workspace)
    tally = Tally(len(program.forms), launch, count=options.count, tracing=options.tracing)
    machine = _Machine(shared, tally, time.monotonic() + options.time_limit_s, options.time_limit_s)
    numbers = options.blocks if options.blocks is not None else range(launch.blocks)
    schedule = Schedule(shared, tally, machine.run_basic_block, options.in_flight(program, len(numbers)))
    with np.errstate(all="ignore"):
        schedule.run(numbers)
    counters = tally.finish(options.touched or Touched(memory.allocations), options.blocks)
    counters.leave_out(program.synthetic)
    return counters


@dataclass(slots=True)
class _Machine:
    """Executes the instructions of one launch."""

    launch: Launch
    tally: Tally
    deadline: float
    limit_s: float

    # ---- one basic block of one warp

    def run_basic_block(self, warp: Warp, block: Block) -> None:
        """Run a basic block with the active lanes, or those of them that need not wait at its beginning."""
        function = self.launch.program.function
        if time.monotonic() > self.deadline:
            where = block.stop - 1, warp.block.number, warp.number
            raise time_limit_error(self.launch.program, self.launch.config, self.limit_s, *where)
        if block.meets:
            collective.meet(warp, block.start)
            if not warp.active.any():
                return
        collective.check_passing(warp, block.rank)
        warp.block.clock += block.stop - block.start
        goals = np.full(LANES, block.successors[-1] if block.successors else EXITED)
        for index in range(block.start, block.stop):
            instruction = function.instructions[index]
            on = warp.guard(instruction)
            self.tally.instruction(warp, index, on)
            if instruction.opcode in ("bra", "brx", "ret", "exit"):
                goals = self._leave(warp, index, instruction, on, goals)
            elif self.launch.program.forms[index].kind == "barrier":
                waits = on & (self.launch.program.forms[index].mode != "arrive")
                move_on(warp, block, warp.active & ~waits, goals)
                if on.any():
                    arrive(warp, index, on)
                return
            elif on.any():
                self._execute(warp, index, instruction, on)
        move_on(warp, block, warp.active, goals)

    def _leave(self, warp: Warp, index: int, instruction: Instruction, on: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Where lanes go at the end of a block whose last instruction is a jump or an exit."""
        goals = np.where(on, self._goals(warp, index, instruction), goals)
        self.tally.branch(index, len(np.unique(goals[warp.active])))
        return goals

    def _goals(self, warp: Warp, index: int, instruction: Instruction) -> np.ndarray:
        """The block to which a jump sends each lane."""
        program = self.launch.program
        if instruction.opcode in ("ret", "exit"):
            return np.full(LANES, EXITED)
        rank_of = {block.start: block.rank for block in program.graph.blocks}
        targets = np.array([rank_of[start] for start in branch_targets(program.function, instruction)])
        if instruction.opcode == "bra":
            return np.full(LANES, targets[0])
        # An index behind the list is undefined in PTX; here it takes the last target.
        chosen = warp.read(instruction.operands[0], program.forms[index].roles[0])
        return targets[np.minimum(chosen, len(targets) - 1)]

    # ---- one instruction

    def _execute(self, warp: Warp, index: int, instruction: Instruction, on: np.ndarray) -> None:
        form = self.launch.program.forms[index]
        if form.opcode == "cp" and not form.is_copy and form.operation != "noinc":
            # What is copied is there at once: there is nothing to wait for, and an arrival that adds one to what the
            # barrier waits for, and comes at once, changes nothing.
            return
        # What a thread may wait for; atomics look whether they change anything.
        self.launch.progress |= form.changes_memory
        if form.mode == "pending_count":
            mbarriers.pending_count(warp, index, on)
        elif form.opcode == "wmma" and form.mode == "mma":
            matrix.multiply(warp, index, on)
        elif form.opcode in _SPECIAL:
            _SPECIAL[form.opcode](warp, index, on)
        elif form.opcode in _MEMORY:
            _MEMORY[form.opcode](warp, self.tally, index, on)
        elif form.opcode in _CHAINS and (form.carry_out or form.opcode.endswith("c")):
            _run_chain(warp, instruction, form, on)
        elif form.opcode not in _NOTHING:
            _run_pure(warp, instruction, form, on)


def _run_pure(warp: Warp, instruction: Instruction, form: Form, on: np.ndarray) -> None:
    """An instruction that computes results from its sources alone."""
    function = pure_function(form)
    if function is None:
        raise UnsupportedInstruction(f"PTX line {instruction.span.line}: '{instruction.text}' is not supported.")
    operands = list(zip(instruction.operands, form.roles, strict=False))
    sources = [warp.read(operand, role) for operand, role in operands if not role.written]
    result = function(form, *sources)
    destination, role = operands[0]
    if isinstance(result, tuple):
        warp.write_pair(destination, result[0], role.type, result[1], on)
    else:
        warp.write(destination, result, role.type, on)


def _move(warp: Warp, index: int, on: np.ndarray) -> None:
    """``mov``: a register, a constant, an address, a pack or an unpack."""
    form = warp.launch.program.forms[index]
    destination, source = warp.launch.program.function.instructions[index].operands
    warp.write(destination, warp.read(source, form.roles[1]), form.type or "", on)


_CHAINS = {
    "add": integers.add_with_carry,
    "addc": integers.add_with_carry,
    "sub": integers.subtract_with_borrow,
    "subc": integers.subtract_with_borrow,
    "mad": integers.multiply_add_with_carry,
    "madc": integers.multiply_add_with_carry,
}


def _run_chain(warp: Warp, instruction: Instruction, form: Form, on: np.ndarray) -> None:
    """Extended precision: the carry flag is a source, a destination, or both."""
    carry = warp.registers[CARRY] if form.opcode.endswith("c") else np.full(LANES, form.opcode == "sub")
    pairs = zip(instruction.operands[1:], form.roles[1:], strict=True)
    result, carry = _CHAINS[form.opcode](form, carry, *(warp.read(operand, role) for operand, role in pairs))
    warp.write(instruction.operands[0], result, form.type or "", on)
    if form.carry_out:
        warp.registers[CARRY] = np.where(on, carry, warp.registers[CARRY])


def _copy(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``cp.async``: a copy, or the arrival of copies at a barrier."""
    is_copy = warp.launch.program.forms[index].is_copy
    (copies.copy if is_copy else mbarriers.operate)(warp, tally, index, on)


def _trap(warp: Warp, index: int, on: np.ndarray) -> None:
    raise warp.fault("trap", index, int(np.flatnonzero(on)[0]))


def _sleep(warp: Warp, index: int, on: np.ndarray) -> None:
    """``nanosleep``: as many ticks of the clock as the lane that sleeps longest."""
    form = warp.launch.program.forms[index]
    duration = warp.read(warp.launch.program.function.instructions[index].operands[0], form.roles[0])
    warp.block.clock += int(duration[on].max())


# ---- built-in functions


def _call(warp: Warp, index: int, on: np.ndarray) -> None:
    """A call of a built-in by the lanes that are on."""
    launch = warp.launch
    returns, _, arguments = launch.program.function.instructions[index].operands[:3]
    assert isinstance(returns, Group) and isinstance(arguments, Group)
    listed = [warp.registers[each.name].astype(np.uint64) for each in arguments.elements if isinstance(each, Register)]
    values = np.array(listed, np.uint64).reshape(-1, LANES)
    lanes = np.flatnonzero(on).tolist()
    launch.progress = True
    made = BuiltInCall(
        launch.program, launch.memory, index, lanes, values,
        lambda lane: (warp.block.shared, warp.local[lane]), sys.stdout.write,
    )  # fmt: skip
    try:
        results = made.run()
    except CallError as failure:
        raise warp.fault(failure.kind, index, failure.lane, failure.message) from None
    for element in returns.elements:
        assert isinstance(element, Register)
        width = TYPE_BYTES[launch.program.function.registers[element.name]]
        warp.write(element, results.astype(f"u{width}"), f"b{8 * width}", on)


_SPECIAL: dict[str, Callable[[Warp, int, np.ndarray], None]] = {
    "mov": _move,
    "cvta": memory_operations.convert_address,
    "isspacep": memory_operations.is_in_space,
    "createpolicy": memory_operations.make_policy,
    "activemask": collective.active_mask,
    "vote": collective.vote,
    "match": collective.match,
    "redux": collective.reduce_members,
    "elect": collective.elect,
    "shfl": collective.shuffle,
    "nanosleep": _sleep,
    "trap": _trap,
    "brkpt": _trap,
    "call": _call,
    "mma": matrix.multiply,
    "movmatrix": matrix.transpose,
}
_MEMORY: dict[str, Callable[[Warp, Tally, int, np.ndarray], None]] = {
    "ld": memory_operations.load,
    "ldu": memory_operations.load,
    "st": memory_operations.store,
    "atom": memory_operations.atomic,
    "red": memory_operations.atomic,
    "cp": _copy,
    "mbarrier": mbarriers.operate,
    "wmma": matrix.load_store,
    "ldmatrix": matrix.load_rows,
    "stmatrix": matrix.store_rows,
}
# Memory is sequentially consistent here and has no caches to fill; where lanes meet, `meet` has done all there is to do.
_NOTHING = "membar fence prefetch prefetchu applypriority discard pmevent griddepcontrol bar".split()
