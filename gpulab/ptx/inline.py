"""A kernel and the functions that it calls, made one flat kernel (PTX ISA 7.1).

What can be inlined is: a parameter of the callee becomes another name for the caller's call variable, a `ret` becomes a
jump behind the body, and the `call` itself vanishes. Functions that can reach themselves, those that are called through a
pointer, and those whose copies would be too many, get one body of their own behind the kernel's, and `calls` lowers the
calls of these. Call variables
that are only stored and loaded whole become registers (`promote`). Built-ins without a body (`vprintf`, `malloc`, …) stay
as `call` instructions whose arguments are registers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpulab.ptx import stack
from gpulab.ptx.beyond import check_function
from gpulab.ptx.builtins import SIGNATURES, BuiltInCall
from gpulab.ptx.callgraph import CallGraph, function_addresses, pieces
from gpulab.ptx.calls import Flat, Section, lower_calls
from gpulab.ptx.names import Names
from gpulab.ptx.opcodes import CARRY
from gpulab.ptx.promote import promote_call_variables
from gpulab.ptx.refusal import refusal
from gpulab.ptx.syntax import (
    SINK,
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
)

_ENDS = ("bra", "brx", "ret", "exit", "trap")


def inline_calls(module: Module, entry: str) -> Function:
    """Make a kernel flat, with all functions that it may call.

    Returns
    -------
    Function
        With the kernel's name and parameters; `variables` and `registers` hold those of all callees under unique names.
        It always ends in a jump, a `ret` or a `trap`. Its only calls are of built-ins.

    Raises
    ------
    UnsupportedInstruction
        For calls of functions that have no body here.
    """
    inliner = _Inliner(module)
    inliner.add_all(entry)
    flat = inliner.flat
    flat.registers, flat.variables, flat.instructions = promote_call_variables(
        flat.registers | {CARRY: "pred"}, flat.variables, flat.instructions
    )
    flat = lower_calls(flat, inliner.graph)
    return replace(
        module.functions[entry],
        registers=flat.registers,
        variables=flat.variables,
        instructions=tuple(flat.instructions),
        labels=flat.labels,
        branch_targets=flat.branch_targets,
    )


def _falls_off(instructions: list[Instruction], labels: dict[str, int]) -> bool:
    if not instructions or len(instructions) in labels.values():
        return True
    return instructions[-1].opcode not in _ENDS or instructions[-1].guard is not None


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.graph = CallGraph(module)
        self.flat = Flat()
        self._module = module
        self._addresses = function_addresses(module)
        self._copies = 0
        self._waiting: list[str] = []
        self._apart: frozenset[str] = frozenset()
        self._owner = ""

    # ---- bodies

    def add_all(self, entry: str) -> None:
        """Append the kernel, and behind it each function that it may call and that cannot be inlined."""
        flat, kernel = self.flat, self._module.functions[entry]
        self._waiting = [entry]
        self._apart = self.graph.too_many(entry)
        for name in self._waiting:  # grows on the way
            self._owner = name
            start = len(flat.instructions)
            if name == entry:
                self._add(kernel, Names())
                if _falls_off(flat.instructions, flat.labels):
                    flat.instructions.append(Instruction("ret", (), (), None, kernel.span, None, "ret"))
            else:
                self._add_shared(self._module.functions[name])
            flat.sections.append(Section(name, start, len(flat.instructions)))

    def _add_shared(self, function: Function) -> None:
        """Append the one body of a function; its arguments come, and its results go, in registers known to all."""
        names = Names(f"@{function.name}")
        for formal in (*function.parameters, *function.returns):
            if formal.space == "param":
                self._declare_variable(formal, formal.name + names.suffix, names)
        first = replace(function.instructions[0], guard=None)
        self._place_labels([stack.entry_of(function.name)])
        back = stack.return_of(function.name)
        self.flat.registers |= {stack.RETURN: "b32", back: "b32"}
        self._emit(first, "mov", ("b32",), (Register(back), Register(stack.RETURN)))
        for number, formal in enumerate(function.parameters):
            self._transfer(first, formal, _own(formal, names), f"argument{number}", into_registers=False)
        self._add(function, names)
        last = replace(function.instructions[-1], guard=None)
        for number, formal in enumerate(function.returns):
            self._transfer(last, formal, _own(formal, names), f"result{number}", into_registers=True)
        self.flat.branch_targets[stack.returns_of(function.name)] = ()  # which ones is known when all calls are
        self._emit(last, "brx", ("idx",), (Register(back), Symbol(stack.returns_of(function.name))))

    def _add(self, function: Function, names: Names) -> None:
        """Append a function's body under new names, its own calls inlined."""
        check_function(function)
        self._declare(function, names)
        first, last = function.instructions[0], function.instructions[-1]
        kept = names.register(Register(stack.ALLOCATED))
        frees = names.return_label is not None and any(each.opcode == "alloca" for each in function.instructions)
        if frees:
            self.flat.registers[kept.name] = "b64"
            self._emit(replace(first, guard=None), "mov", ("b64",), (kept, Register(stack.ALLOCATED)))
        labels_at: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            labels_at.setdefault(index, []).append(names.label(label))
        for index, instruction in enumerate(function.instructions):
            self._place_labels(labels_at.get(index, ()))
            self._add_instruction(instruction, names, function)
        self._place_labels(labels_at.get(len(function.instructions), ()))
        if names.return_label is not None:
            self._place_labels([names.return_label])
        if frees:
            self._emit(replace(last, guard=None), "mov", ("b64",), (Register(stack.ALLOCATED), kept))

    def _declare(self, function: Function, names: Names) -> None:
        flat = self.flat
        for name, type_name in function.registers.items():
            flat.registers[names.register(Register(name)).name] = type_name
        for name, variable in function.variables.items():
            # A shared array of a function is one array, however often the function is inlined.
            spelling = name if not names.suffix else f"{function.name}::{name}" if variable.space == "shared" else None
            self._declare_variable(variable, spelling or name + names.suffix, names)
        for label in function.labels:
            names.symbols[label] = names.label(label)
        for label, targets in function.branch_targets.items():
            names.symbols[label] = names.label(label)
            flat.branch_targets[names.label(label)] = tuple(names.label(target) for target in targets)

    def _declare_variable(self, variable: Variable, spelling: str, names: Names) -> None:
        names.symbols[variable.name] = spelling
        self.flat.variables[spelling] = replace(variable, name=spelling)
        self.flat.owners[spelling] = self._owner

    def _place_labels(self, labels: Iterable[str]) -> None:
        for label in labels:
            self.flat.labels[label] = len(self.flat.instructions)

    # ---- instructions

    def _add_instruction(self, instruction: Instruction, names: Names, function: Function) -> None:
        operand_of = names.operand if instruction.opcode == "call" else lambda operand: self._value(operand, names)
        operands = tuple(operand_of(operand) for operand in instruction.operands)
        guard = instruction.guard and Guard(names.register(instruction.guard.register), instruction.guard.negated)
        renamed = instruction
        if names.suffix or operands != instruction.operands:
            renamed = replace(instruction, operands=operands, guard=guard)
        if instruction.opcode == "call":
            self._add_call(renamed, function)
        elif instruction.opcode == "ret" and names.return_label is not None:
            self.flat.instructions.append(
                replace(renamed, opcode="bra", modifiers=("uni",), operands=(Symbol(names.return_label),))
            )
        elif instruction.opcode in stack.OPCODES:
            self.flat.registers |= stack.REGISTERS
            with self._skipped_unless(renamed):
                self.flat.instructions += stack.expanded(replace(renamed, guard=None))
        else:
            self.flat.instructions.append(renamed)

    def _value(self, operand: Operand, names: Names) -> Operand:
        """An operand in the flat kernel; the name of a function is its address."""
        if isinstance(operand, Symbol) and operand.name in self._addresses and operand.name not in names.symbols:
            return Immediate(self._addresses[operand.name] + operand.offset)
        return names.operand(operand)

    def _emit(
        self, source: Instruction, opcode: str, modifiers: tuple[str, ...], operands: tuple[Operand, ...]
    ) -> None:
        """Append an instruction that the PTX does not have, in the place of one that it has."""
        self.flat.instructions.append(
            replace(source, opcode=opcode, modifiers=modifiers, operands=operands, synthetic=True)
        )

    # ---- calls

    def _add_call(self, call: Instruction, function: Function) -> None:
        target = call.operands[1]
        if isinstance(target, Symbol) and not self._has_body(target.name):
            if target.name not in SIGNATURES:
                message = (
                    f"function '{target.name}' has no body in this module. Put its definition into the same source."
                )
                raise refusal(call, message)
            built_in = BuiltInCall(call, target.name, self.flat.registers, self.flat.variables)
            self.flat.instructions += [*built_in.before, built_in.call]
            return
        if isinstance(target, Symbol) and self._module.functions[target.name].is_entry:
            raise refusal(call, f"'{target.name}' is a kernel, and only a .func can be called.")
        plain = replace(call, guard=None)
        if isinstance(target, Symbol) and not (target.name in self._apart or self.graph.is_recursive(target.name)):
            with self._skipped_unless(call, counts=True):
                self._add_callee(plain, self._module.functions[target.name])
        else:
            with self._skipped_unless(call):
                self._add_real_call(plain, function)

    @contextlib.contextmanager
    def _skipped_unless(self, guarded: Instruction, *, counts: bool = False) -> Iterator[None]:
        """What is appended is jumped over by lanes whose guard does not hold."""
        self._copies += 1
        skip = f"skip@{self._copies}"
        if guarded.guard is not None:
            unless = Guard(guarded.guard.register, not guarded.guard.negated)
            jump = replace(guarded, opcode="bra", modifiers=(), operands=(Symbol(skip),), guard=unless)
            self.flat.instructions.append(replace(jump, synthetic=not counts))
        yield
        self._place_labels([skip])

    def _has_body(self, name: str) -> bool:
        return name in self._module.functions and bool(self._module.functions[name].instructions)

    def _add_callee(self, call: Instruction, callee: Function) -> None:
        returns, _, arguments = call.operands[:3]
        self._copies += 1
        names = Names(f"@{self._copies}")
        for type_name, register, argument in self._bind(call, callee.parameters, arguments, names):
            self._move(call, type_name, register, argument)
        results = self._bind(call, callee.returns, returns, names)
        self._add(callee, names)
        for type_name, register, destination in results:
            self._move(call, type_name, destination, register)

    def _bind(
        self, call: Instruction, formals: tuple[Variable, ...], group: Operand, names: Names
    ) -> list[tuple[str, Register, Operand]]:
        """Give the callee's `.param` variables the caller's names; return type, register, operand of `.reg` ones."""
        moves = []
        for formal, actual in self._paired(call, formals, group):
            if isinstance(actual, Symbol):
                names.symbols[formal.name] = actual.name
            else:
                register = names.register(Register(formal.name))
                self.flat.registers[register.name] = formal.type
                moves.append((formal.type, register, actual))
        return moves

    def _paired(
        self, call: Instruction, formals: Sequence[Variable], actuals: Operand
    ) -> list[tuple[Variable, Operand]]:
        """Parameters or results with what is passed for them: call variables of their size, or registers and constants."""
        assert isinstance(actuals, Group)
        if len(formals) != len(actuals.elements):
            raise refusal(call, f"the function has {len(formals)} parameters here, but {len(actuals.elements)} came.")
        for formal, actual in zip(formals, actuals.elements, strict=True):
            if formal.space == "reg":
                if not isinstance(actual, (Register, Immediate)) or (actual == SINK and actuals is call.operands[2]):
                    raise refusal(call, "only registers and constants can be passed to .reg parameters.")
                continue
            variable = self.flat.variables.get(actual.name) if isinstance(actual, Symbol) else None
            if variable is None or variable.space != "param":
                raise refusal(call, "only .param variables can be passed to .param parameters.")
            if variable.size != formal.size:
                message = f"{variable.name} has {variable.size} bytes, but what it is passed for has {formal.size}."
                raise refusal(call, message)
        return list(zip(formals, actuals.elements, strict=True))

    def _move(self, call: Instruction, type_name: str, destination: Operand, source: Operand) -> None:
        self.flat.instructions.append(
            replace(call, opcode="mov", modifiers=(type_name,), operands=(destination, source))
        )

    def _add_real_call(self, call: Instruction, function: Function) -> None:
        """A call that stays one until `lower_calls`: ``call (result registers), {entries}, (argument registers)``."""
        target = call.operands[1]
        targets = self.graph.targets(function, call)
        self._waiting += [name for name in targets if name not in self._waiting]
        like = self.graph.prototype(function, call)
        arguments = [
            register
            for number, (formal, actual) in enumerate(self._paired(call, like.parameters, call.operands[2]))
            for register in self._transfer(call, formal, actual, f"argument{number}", into_registers=True)
        ]
        results = [
            Register(stack.passed(f"result{number}", *piece))
            for number, formal in enumerate(like.returns)
            for piece in pieces(formal)
        ]
        operands: list[Operand] = [
            Group(tuple(results)),
            Group(tuple(Symbol(stack.entry_of(each)) for each in targets)),
            Group(tuple(arguments)),
        ]
        if not isinstance(target, Symbol):
            self.flat.registers[stack.ADDRESS] = "b64"
            self._emit(call, "mov", ("b64",), (Register(stack.ADDRESS), target))
            operands.append(Register(stack.ADDRESS))
        self.flat.instructions.append(replace(call, operands=tuple(operands)))
        for number, (formal, actual) in enumerate(self._paired(call, like.returns, call.operands[0])):
            self._transfer(call, formal, actual, f"result{number}", into_registers=False)

    def _transfer(
        self, source: Instruction, formal: Variable, actual: Operand, stem: str, *, into_registers: bool
    ) -> list[Register]:
        """Move a parameter, piece by piece, into the registers that pass it, or out of them."""
        registers = []
        for offset, size in pieces(formal):
            register = Register(stack.passed(stem, offset, size))
            self.flat.registers[register.name] = f"b{8 * max(size, 2)}"
            registers.append(register)
            bits = f"b{8 * size}"
            if not isinstance(actual, Symbol):
                pair = (register, actual) if into_registers else (actual, register)
                self._emit(source, "mov", (bits,), pair)
            elif into_registers:
                self._emit(source, "ld", ("param", bits), (register, Address(actual, offset)))
            else:
                self._emit(source, "st", ("param", bits), (Address(actual, offset), register))
        return registers


def _own(formal: Variable, names: Names) -> Operand:
    """A function's own parameter as an operand in its body."""
    if formal.space == "reg":
        return names.register(Register(formal.name))
    return Symbol(names.symbols[formal.name])
