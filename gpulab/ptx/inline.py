"""Calls of device functions, inlined: what is left is one flat kernel (PTX ISA 7.1).

A parameter of the callee becomes another name for the caller's call variable, a `ret` becomes a jump behind the body,
and the `call` itself vanishes. Call variables that are only stored and loaded whole become registers (`promote`).
Built-ins without a body (`vprintf`, `__assertfail`) stay as `call` instructions whose arguments are registers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx.opcodes import CARRY
from gpulab.ptx.promote import promote_call_variables
from gpulab.ptx.syntax import (
    Address,
    Function,
    Group,
    Guard,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
)

BUILT_INS = ("vprintf", "__assertfail")
_ENDS = ("bra", "brx", "ret", "exit", "trap")


def inline_calls(module: Module, entry: str) -> Function:
    """Inline every call of a kernel, calls of callees included.

    Returns
    -------
    Function
        With the kernel's name and parameters; `variables` and `registers` hold those of all callees under unique names.
        It always ends in a jump, a `ret` or a `trap`.

    Raises
    ------
    UnsupportedInstruction
        For recursion, indirect calls, and calls of functions that have no body here.
    """
    function = module.functions[entry]
    inliner = _Inliner(module)
    inliner.add(function, _Names(), (entry,))
    registers, variables, instructions = promote_call_variables(
        inliner.registers | {CARRY: "pred"}, inliner.variables, inliner.instructions
    )
    if _falls_off(instructions, inliner.labels):
        instructions = [*instructions, Instruction("ret", (), (), None, function.span, None, "ret")]
    return replace(
        function,
        registers=registers,
        variables=variables,
        instructions=tuple(instructions),
        labels=inliner.labels,
        branch_targets=inliner.branch_targets,
    )


def _falls_off(instructions: list[Instruction], labels: dict[str, int]) -> bool:
    if not instructions or len(instructions) in labels.values():
        return True
    return instructions[-1].opcode not in _ENDS or instructions[-1].guard is not None


@dataclass(slots=True)
class _Names:
    """How names of a function are spelled in the flat kernel."""

    suffix: str = ""
    symbols: dict[str, str] = field(default_factory=dict)
    return_label: str | None = None

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix) if self.suffix and register.name != "_" else register

    def label(self, name: str) -> str:
        return name + self.suffix

    def operand(self, operand: Operand) -> Operand:
        if not self.suffix:
            return operand
        return map_operand(operand, self.register, lambda name: self.symbols.get(name, name))


class _Inliner:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._copies = 0
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.branch_targets: dict[str, tuple[str, ...]] = {}

    def add(self, function: Function, names: _Names, chain: tuple[str, ...]) -> None:
        """Append a function's body under new names, its own calls inlined."""
        self._declare(function, names)
        labels_at: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            labels_at.setdefault(index, []).append(names.label(label))
        for index, instruction in enumerate(function.instructions):
            self._place_labels(labels_at.get(index, ()))
            self._add_instruction(instruction, names, chain)
        self._place_labels(labels_at.get(len(function.instructions), ()))

    def _declare(self, function: Function, names: _Names) -> None:
        for name, type_name in function.registers.items():
            self.registers[names.register(Register(name)).name] = type_name
        for name, variable in function.variables.items():
            # A shared array of a function is one array, however often the function is inlined.
            spelling = name if not names.suffix else f"{function.name}::{name}" if variable.space == "shared" else None
            spelling = spelling or name + names.suffix
            names.symbols[name] = spelling
            self.variables[spelling] = replace(variable, name=spelling)
        for label in function.labels:
            names.symbols[label] = names.label(label)
        for label, targets in function.branch_targets.items():
            names.symbols[label] = names.label(label)
            self.branch_targets[names.label(label)] = tuple(names.label(target) for target in targets)

    def _place_labels(self, labels: Iterable[str]) -> None:
        for label in labels:
            self.labels[label] = len(self.instructions)

    def _add_instruction(self, instruction: Instruction, names: _Names, chain: tuple[str, ...]) -> None:
        operands = tuple(names.operand(operand) for operand in instruction.operands)
        guard = instruction.guard and Guard(names.register(instruction.guard.register), instruction.guard.negated)
        renamed = replace(instruction, operands=operands, guard=guard) if names.suffix else instruction
        if instruction.opcode == "call":
            self._add_call(renamed, chain)
        elif instruction.opcode == "ret" and names.return_label is not None:
            self.instructions.append(
                replace(renamed, opcode="bra", modifiers=("uni",), operands=(Symbol(names.return_label),))
            )
        else:
            self.instructions.append(renamed)

    def _add_call(self, call: Instruction, chain: tuple[str, ...]) -> None:
        returns, target, arguments = call.operands[:3]
        if not isinstance(target, Symbol):
            raise _refusal(call, "calls through a function pointer are not supported; call the function by its name.")
        if target.name in BUILT_INS:
            self.instructions.append(call)
            return
        if target.name in chain:
            path = " -> ".join((*chain, target.name))
            raise _refusal(call, f"recursion is not supported ({path}); rewrite the function as a loop.")
        if target.name in ("malloc", "free"):
            raise _refusal(call, "memory from the GPU's heap is not supported; use a local array, or pass an array in.")
        callee = self._module.functions.get(target.name)
        if callee is None or not callee.instructions:
            raise _refusal(call, f"function '{target.name}' has no body in this module.")
        assert isinstance(returns, Group) and isinstance(arguments, Group)
        self._add_callee(call, callee, returns, arguments, (*chain, target.name))

    def _add_callee(
        self, call: Instruction, callee: Function, returns: Group, arguments: Group, chain: tuple[str, ...]
    ) -> None:
        self._copies += 1
        suffix = f"@{self._copies}"
        names = _Names(suffix, return_label=f"return{suffix}")
        skip = f"skip{suffix}"
        if call.guard is not None:
            unless = Guard(call.guard.register, not call.guard.negated)
            self.instructions.append(replace(call, opcode="bra", modifiers=(), operands=(Symbol(skip),), guard=unless))
        for type_name, register, argument in self._bind(call, callee.parameters, arguments.elements, names):
            self._move(call, type_name, register, argument)
        results = self._bind(call, callee.returns, returns.elements, names)
        self.add(callee, names, chain)
        self._place_labels([f"return{suffix}"])
        for type_name, register, destination in results:
            self._move(call, type_name, destination, register)
        self._place_labels([skip])

    def _bind(
        self, call: Instruction, formals: tuple[Variable, ...], actuals: tuple[Operand, ...], names: _Names
    ) -> list[tuple[str, Register, Operand]]:
        """Give the callee's `.param` variables the caller's names; return type, register, operand of `.reg` ones."""
        if len(formals) != len(actuals):
            raise _refusal(call, f"the function has {len(formals)} parameters here, but {len(actuals)} came.")
        moves = []
        for formal, actual in zip(formals, actuals, strict=True):
            if formal.space == "reg":
                register = names.register(Register(formal.name))
                self.registers[register.name] = formal.type
                moves.append((formal.type, register, actual))
            elif isinstance(actual, Symbol):
                names.symbols[formal.name] = actual.name
            else:
                raise _refusal(call, "only .param variables can be passed to .param parameters.")
        return moves

    def _move(self, call: Instruction, type_name: str, destination: Operand, source: Operand) -> None:
        moved = replace(call, opcode="mov", modifiers=(type_name,), operands=(destination, source), guard=None)
        self.instructions.append(moved)


def map_operand(operand: Operand, register: Callable[[Register], Register], symbol: Callable[[str], str]) -> Operand:
    """The operand with its registers and symbol names replaced."""
    if isinstance(operand, Register):
        return register(operand)
    if isinstance(operand, Symbol):
        return Symbol(symbol(operand.name), operand.offset)
    if isinstance(operand, Address):
        base = operand.base and map_operand(operand.base, register, symbol)
        return Address(base, operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, Group):
        return Group(tuple(map_operand(element, register, symbol) for element in operand.elements))
    if isinstance(operand, Negated):
        return Negated(register(operand.register))
    if isinstance(operand, Pair):
        return Pair(register(operand.first), register(operand.second))
    return operand


def _refusal(instruction: Instruction, message: str) -> UnsupportedInstruction:
    line = instruction.span.line
    place = f"PTX line {line}"
    if instruction.location is not None:
        place += f" ({instruction.location.file}, line {instruction.location.line})"
    told = re.sub(r"\b_Z\w+", lambda found: _plain_name(found[0]), f"'{instruction.text}': {message}")
    return UnsupportedInstruction(f"{place}: {told}", line)


def _plain_name(mangled: str) -> str:
    """The function's own name of what a compiler made of it: ``f`` of ``_ZN8__main__1fB2v1Ex`` (Itanium C++ ABI)."""
    name, rest = mangled, re.sub("^_ZN?K?L?", "", mangled)
    while digits := re.match(r"\d+", rest):
        stop = digits.end() + int(digits[0])
        name, rest = rest[digits.end() : stop], rest[stop:]
    return name
