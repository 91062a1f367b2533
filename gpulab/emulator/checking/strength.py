"""What an access is to the order of things: plain, volatile, or strong (atomic, or with an order of its own)."""

from __future__ import annotations

from gpulab.emulator.checking.layout import PLAIN, STRONG, VOLATILE
from gpulab.emulator.program import Program
from gpulab.ptx.opcodes import Form, read_registers, written_registers
from gpulab.ptx.syntax import Register

_ATOMIC = ("atomic", "reduction")
_RELEASING = ("release", "acq_rel", "sc")
_MONOTONE = ("min", "max", "and", "or", "cas")


def strengths(program: Program) -> tuple[int, ...]:
    """The strength of each instruction."""
    confirmed = _confirmed_loads(program)
    found = []
    for index, form in enumerate(program.forms):
        ordered = bool(form.access_bytes) and form.semantics in ("relaxed", "acquire", "release")
        if is_barrier_in_memory(form):
            # Nobody may be there before it is made.
            found.append(PLAIN if form.mode == "init" else STRONG)
        elif form.kind in _ATOMIC or ordered or index in confirmed:
            found.append(STRONG)
        else:
            found.append(VOLATILE if form.access_bytes and form.semantics == "volatile" else PLAIN)
    return tuple(found)


def is_barrier_in_memory(form: Form) -> bool:
    """Whether an instruction is an operation on a barrier in shared memory."""
    return form.opcode == "mbarrier" or (form.opcode == "cp" and form.mode == "mbarrier")


def is_fence(program: Program, index: int) -> bool:
    """Whether an instruction makes what its thread did before seen by others: a fence, or an access that releases."""
    form = program.forms[index]
    if is_barrier_in_memory(form):
        return False
    return form.opcode in ("membar", "fence") or (bool(form.access_bytes) and form.semantics in _RELEASING)


def has_flags(program: Program) -> bool:
    """Whether threads may wait for, or act on, what others leave: a volatile access, or an atomic whose result is looked at."""
    pairs = list(zip(program.function.instructions, program.forms, strict=True))
    read = {name for pair in pairs for name in read_registers(*pair)}
    return any(
        any(name in read for name in written_registers(instruction, form))
        if form.kind == "atomic"
        else form.kind != "reduction" and strength != PLAIN
        for (instruction, form), strength in zip(pairs, strengths(program), strict=True)
    )


def is_monotone(program: Program, index: int) -> bool:
    """Whether an atomic is one that usually moves its value one way, so that a glance at it beside is a bound."""
    form = program.forms[index]
    return form.kind in _ATOMIC and form.operation in _MONOTONE


def _confirmed_loads(program: Program) -> set[int]:
    """Loads whose value a compare-and-swap confirms: the way in which atomics are made that hardware lacks."""
    instructions, forms = program.function.instructions, program.forms
    sources: dict[str, list[int]] = {}
    for index, (instruction, form) in enumerate(zip(instructions, forms, strict=True)):
        for name in written_registers(instruction, form):
            sources.setdefault(name, []).append(index)
    ahead = [
        instruction.operands[2].name
        for instruction, form in zip(instructions, forms, strict=True)
        if form.operation == "cas" and isinstance(instruction.operands[2], Register)
    ]
    loads: set[int] = set()
    seen: set[str] = set()
    while ahead:
        name = ahead.pop()
        if name in seen:
            continue
        seen.add(name)
        for index in sources.get(name, ()):
            if forms[index].kind == "load":
                loads.add(index)
            elif forms[index].opcode in ("mov", "selp"):
                ahead += [each.name for each in instructions[index].operands[1:] if isinstance(each, Register)]
    return loads
