"""Calls that are not inlined: of recursive functions, and through pointers (PTX ISA 7.1, 9.7.12.5).

Arguments and results pass through registers that all functions know, and so does the number of the call to which a
function returns: its `ret` is a `brx` over all calls that may have come. A call through a pointer compares it with the
addresses of the functions that fit, and is a `brx` over these. A function that can reach itself saves, before it calls on
within its cycle, the registers that it needs afterwards: they lie on the thread's stack (`stack`), as do its local arrays.

All that is put in here is marked as synthetic. What counts is the instruction of the PTX: the `call` as one jump, the
`ret` as one jump.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpulab.ptx import stack
from gpulab.ptx.callgraph import CallGraph, function_addresses
from gpulab.ptx.cfg import flow, live_before
from gpulab.ptx.opcodes import form
from gpulab.ptx.stack import synthetic
from gpulab.ptx.syntax import (
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Variable,
    symbols_in,
)
from gpulab.ptx.types import TYPE_BYTES

_VECTOR_BYTES = 16
_TARGET = "target@"
_IS_TARGET = "is target@"
_PLACE = "place@"
_NARROW_PLACE = "narrow place@"
_WORDS = tuple(f"word{number}@" for number in range(4))


@dataclass(frozen=True, slots=True)
class Section:
    """One body in the flat kernel: the kernel's own, or that of a function that is not inlined."""

    function: str
    start: int
    stop: int


@dataclass(slots=True)
class Flat:
    """A kernel in the making, fields as in `Function`; `owners` says in whose section a variable was declared."""

    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    """What a recursive function has on the stack: its variables, and behind them what a call saves."""

    places: dict[str, int] = field(default_factory=dict)
    size: int = 0


@dataclass(slots=True)
class _Call:
    """A call that is left: its number, which is where it returns to, and what it saves (offset, registers)."""

    number: int
    targets: tuple[str, ...]
    saves: list[tuple[int, list[str]]] = field(default_factory=list)


def lower_calls(flat: Flat, graph: CallGraph) -> Flat:
    """Put jumps in the place of all calls that name their functions in a group; see `_Inliner._add_real_call`."""
    calls = {
        index: _Call(number, tuple(stack.function_at(each.name) for each in instruction.operands[1].elements))
        for number, (index, instruction) in enumerate(
            (index, each)
            for index, each in enumerate(flat.instructions)
            if each.opcode == "call" and isinstance(each.operands[1], Group)
        )
    }
    if not calls and stack.ALLOCATED not in flat.registers:
        return flat
    frames = {section.function: _frame(flat, section, calls, graph) for section in flat.sections}
    return _Writer(flat, calls, frames, function_addresses(graph.module)).write()


# ---- frames


def _frame(flat: Flat, section: Section, calls: dict[int, _Call], graph: CallGraph) -> _Frame:
    """Lay out a section's frame, and note what each of its calls has to save."""
    frame = _Frame()
    name = section.function
    if not graph.is_recursive(name):
        return frame
    for variable in flat.variables.values():
        if flat.owners.get(variable.name) == name and variable.space in ("local", "param"):
            frame.places[variable.name] = _aligned(frame.size, variable.align)
            frame.size = frame.places[variable.name] + variable.size
    own = [index for index in calls if section.start <= index < section.stop]
    inner = [index for index in own if any(graph.same_cycle(name, target) for target in calls[index].targets)]
    first = _aligned(frame.size, _VECTOR_BYTES)
    ends = [frame.size]
    for index, live in _live_after(flat, section, inner).items():
        calls[index].saves, end = _packed(flat, live, first)
        ends.append(end)
    frame.size = _aligned(max(ends), _VECTOR_BYTES)
    return frame


def _live_after(flat: Flat, section: Section, calls: list[int]) -> dict[int, set[str]]:
    """Registers of a section whose value is needed behind each of some calls."""
    function = _as_function(flat, section)
    forms = [form(instruction) for instruction in function.instructions]
    graph = flow(function, forms)
    known_to_all = {stack.FRAME, stack.DEPTH, stack.ALLOCATED}
    found = {}
    for index in calls:
        at = index - section.start
        block = next((block for block in graph.blocks if block.start <= at < block.stop), None)
        if block is not None:
            results = {each.name for each in flat.instructions[index].operands[0].elements}
            live = live_before(function, forms, graph, block, at + 1)
            found[index] = live - results - known_to_all
    return found


def _as_function(flat: Flat, section: Section) -> Function:
    """A section alone, its calls instructions like others."""
    inside = {
        label: index - section.start for label, index in flat.labels.items() if section.start <= index < section.stop
    }
    instructions = tuple(flat.instructions[section.start : section.stop])
    return Function(
        name=section.function,
        is_entry=False,
        parameters=(),
        returns=(),
        registers=flat.registers,
        variables=flat.variables,
        instructions=instructions,
        labels=inside,
        span=instructions[0].span,
        branch_targets=flat.branch_targets,
    )


def _packed(flat: Flat, names: Iterable[str], start: int) -> tuple[list[tuple[int, list[str]]], int]:
    """Lay out registers behind `start`, those of one size in vectors; groups with their offsets, and the end."""
    alike: dict[tuple[int, bool], list[str]] = {}
    for name in sorted(names):
        kind = flat.registers[name]
        alike.setdefault((_saved_bytes(kind), kind == "pred"), []).append(name)
    groups, end = [], start
    for (size, _), members in sorted(alike.items(), reverse=True):
        most = min(_VECTOR_BYTES // size, 4)
        while members:
            count = next(count for count in (most, 2, 1) if count <= min(most, len(members)))
            end = _aligned(end, size * count)
            groups.append((end, members[:count]))
            end += size * count
            members = members[count:]
    return groups, end


def _saved_bytes(type_name: str) -> int:
    return 4 if type_name == "pred" else TYPE_BYTES[type_name]


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


# ---- code


class _Writer:
    """Writes the instructions anew, with what calls, returns and frames take."""

    def __init__(
        self, flat: Flat, calls: dict[int, _Call], frames: dict[str, _Frame], addresses: dict[str, int]
    ) -> None:
        self._flat = flat
        self._addresses = addresses
        self._calls = calls
        self._frames = frames
        self._largest = max(frame.size for frame in frames.values())
        self._out: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._wrong: list[tuple[str, Instruction]] = []
        self._registers: dict[str, str] = {stack.RETURN: "b32", stack.DEPTH: "b32"}
        self._frame = _Frame()
        self._targets = dict(flat.branch_targets)

    def write(self) -> Flat:
        """The kernel with jumps in the place of calls."""
        flat = self._flat
        variables = {
            name: variable
            for name, variable in flat.variables.items()
            if not any(name in frame.places for frame in self._frames.values())
        }
        if self._largest:
            variables[stack.STACK] = stack.stack_variable(self._largest)
            self._registers |= {stack.FRAME: "b64", stack.TOO_DEEP: "pred"}
        if stack.ALLOCATED in flat.registers:
            variables[stack.ALLOCA_AREA.name] = stack.ALLOCA_AREA
        self._out += stack.start(flat.instructions[0], variables)
        labels_at: dict[int, list[str]] = {}
        for label, index in flat.labels.items():
            labels_at.setdefault(index, []).append(label)
        for section in flat.sections:
            self._frame = self._frames[section.function]
            for index in range(section.start, section.stop):
                self._labels |= dict.fromkeys(labels_at.get(index, ()), len(self._out))
                self._write(section, index)
        self._write_wrong_addresses()
        return replace(
            flat,
            registers=flat.registers | self._registers,
            variables=variables,
            instructions=self._out,
            labels=self._labels,
            branch_targets=self._targets,
        )

    def _write(self, section: Section, index: int) -> None:
        instruction = self._flat.instructions[index]
        if index in self._calls:
            self._write_call(instruction, self._calls[index])
        elif instruction.opcode == "brx" and instruction.synthetic:
            self._write_return(instruction, section.function)
        else:
            self._out.append(self._placed(instruction))

    # ---- calls and returns

    def _write_call(self, call: Instruction, made: _Call) -> None:
        pushes, pops = self._saves(call, made)
        self._out += pushes
        if self._frame.size:
            self._out += self._advance(call)
        self._out.append(synthetic(call, "mov.b32", Register(stack.RETURN), Immediate(made.number)))
        self._write_jump(call, made)
        self._labels[_site(made)] = len(self._out)
        if self._frame.size:
            size = Immediate(self._frame.size)
            self._out.append(synthetic(call, "sub.u64", Register(stack.FRAME), Register(stack.FRAME), size))
            self._out.append(synthetic(call, "sub.u32", Register(stack.DEPTH), Register(stack.DEPTH), Immediate(1)))
        self._out += pops

    def _advance(self, call: Instruction) -> list[Instruction]:
        """Begin a new frame, if there is room for the largest of all."""
        frame, depth = Register(stack.FRAME), Register(stack.DEPTH)
        return [
            synthetic(call, "add.u64", frame, frame, Immediate(self._frame.size)),
            synthetic(call, "add.u32", depth, depth, Immediate(1)),
            synthetic(call, "setp.gt.u64", Register(stack.TOO_DEEP), frame, Symbol(stack.STACK, stack.STACK_BYTES)),
            stack.overflow(call, depth),
        ]

    def _write_jump(self, call: Instruction, made: _Call) -> None:
        if len(call.operands) == 3:
            entry = Symbol(stack.entry_of(made.targets[0]))
            self._out.append(replace(call, opcode="bra", modifiers=("uni",), operands=(entry,)))
            return
        target, address = Register(_TARGET), call.operands[3]
        self._registers |= {_TARGET: "b32", _IS_TARGET: "pred"}
        self._out.append(synthetic(call, "mov.b32", target, Immediate(len(made.targets))))
        for number, name in enumerate(made.targets):
            code = Immediate(self._addresses[name])
            self._out.append(synthetic(call, "setp.eq.s64", Register(_IS_TARGET), address, code))
            self._out.append(synthetic(call, "mov.b32", target, Immediate(number), guard=_IS_TARGET))
        wrong, table = f"wrong@{made.number}", f"targets@{made.number}"
        self._wrong.append((wrong, call))
        self._targets[table] = (*map(stack.entry_of, made.targets), wrong)
        self._out.append(replace(call, opcode="brx", modifiers=("idx",), operands=(target, Symbol(table))))

    def _write_wrong_addresses(self) -> None:
        """Where calls lead whose address is no function's."""
        for label, call in self._wrong:
            self._labels[label] = len(self._out)
            self._out.append(synthetic(call, "call", Group(()), Symbol(stack.NO_FUNCTION), Group((call.operands[3],))))
            self._out.append(synthetic(call, "exit"))

    def _write_return(self, marker: Instruction, function: str) -> None:
        back = [made for made in self._calls.values() if function in made.targets]
        if len(back) == 1:
            self._out.append(synthetic(marker, "bra.uni", Symbol(_site(back[0]))))
            return
        sites = [_site(back[0])] * (back[-1].number + 1)
        for made in back:
            sites[made.number] = _site(made)
        self._targets[stack.returns_of(function)] = tuple(sites)
        self._out.append(marker)

    # ---- saving registers

    def _saves(self, call: Instruction, made: _Call) -> tuple[list[Instruction], list[Instruction]]:
        """Instructions that save the registers of a call, and that take them back."""
        pushes: list[Instruction] = []
        pops: list[Instruction] = []
        for offset, names in made.saves:
            place = Address(Register(stack.FRAME), offset)
            predicates = self._flat.registers[names[0]] == "pred"
            words = _WORDS[: len(names)] if predicates else names
            size = _saved_bytes(self._flat.registers[names[0]])
            vector = f".v{len(names)}" if len(names) > 1 else ""
            kind = f"param{vector}.b{8 * size}"
            value: Operand = Group(tuple(map(Register, words))) if vector else Register(words[0])
            after = [synthetic(call, f"ld.{kind}", value, place)]
            if predicates:
                self._registers |= dict.fromkeys(_WORDS, "b32")
                for name, word in zip(names, words, strict=True):
                    one, zero = Immediate(1), Immediate(0)
                    pushes.append(synthetic(call, "selp.b32", Register(word), one, zero, Register(name)))
                    after.append(synthetic(call, "setp.ne.u32", Register(name), Register(word), zero))
            pushes.append(synthetic(call, f"st.{kind}", place, value))
            pops += after
        return pushes, pops

    # ---- variables on the stack

    def _placed(self, instruction: Instruction) -> Instruction:
        """An instruction with frame addresses in the place of variables that are on the stack."""
        places = self._frame.places
        if not any(symbol.name in places for operand in instruction.operands for symbol in symbols_in(operand)):
            return instruction
        return replace(instruction, operands=tuple(self._on_stack(instruction, each) for each in instruction.operands))

    def _on_stack(self, instruction: Instruction, operand: Operand) -> Operand:
        frame = Register(stack.FRAME)
        if (
            isinstance(operand, Address)
            and isinstance(operand.base, Symbol)
            and operand.base.name in self._frame.places
        ):
            place = self._frame.places[operand.base.name]
            return Address(frame, place + operand.base.offset + operand.offset)
        if not isinstance(operand, Symbol) or operand.name not in self._frame.places:
            return operand
        self._registers |= {_PLACE: "b64", _NARROW_PLACE: "b32"}
        place = Immediate(self._frame.places[operand.name] + operand.offset)
        self._out.append(synthetic(instruction, "add.u64", Register(_PLACE), frame, place))
        if not instruction.modifiers[-1].endswith("32"):
            return Register(_PLACE)
        self._out.append(synthetic(instruction, "cvt.u32.u64", Register(_NARROW_PLACE), Register(_PLACE)))
        return Register(_NARROW_PLACE)


def _site(made: _Call) -> str:
    """Label of the place behind a call."""
    return f"site@{made.number}"
