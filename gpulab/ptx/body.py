"""The body of a function: declarations, labels, scopes and instructions, made into one flat list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpulab.ptx.debuginfo import LineTable, skip_section
from gpulab.ptx.declarations import integer, read_parameters, read_variables
from gpulab.ptx.lexer import Tokens
from gpulab.ptx.operands import OperandReader
from gpulab.ptx.scope import Scope
from gpulab.ptx.syntax import (
    Address,
    Group,
    Guard,
    Instruction,
    Location,
    Operand,
    Prototype,
    Register,
    Symbol,
    Variable,
)
from gpulab.ptx.types import TYPE_BYTES

MOST_SCOPES = 100


class BodyReader:
    """Reads one body between ``{`` and ``}``; the results lie in the attributes, named as in `Function`."""

    def __init__(self, tokens: Tokens, lines: LineTable, parameters: tuple[Variable, ...]) -> None:
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self._tokens = tokens
        self._lines = lines
        self._location: Location | None = None
        self._scope = Scope()
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.operands = OperandReader(tokens, self._scope)
        self._directives: dict[str, Callable[[], None]] = {
            ".reg": self._read_registers,
            ".loc": self._read_location,
            ".pragma": tokens.skip_statement,
            ".section": lambda: skip_section(tokens),
            **{f".{space}": self._variable_reader(space) for space in ("local", "shared", "param")},
            **dict.fromkeys((".global", ".const"), self._refuse_variables),
            ".extern": self._read_extern,
        }
        for parameter in parameters:
            self._declare_parameter(parameter)

    def read(self) -> None:
        """Read from behind the opening ``{`` to behind its ``}``."""
        tokens, kinds = self._tokens, self._tokens.kinds
        while tokens.kind != "}":
            kind = tokens.kind
            if kind == "word" and kinds[tokens.index + 1] == ":":
                self._read_label()
            elif kind == "word" or kind == "@":
                self._read_instruction()
            elif kind == "directive":
                self._read_directive()
            elif kind == "{":
                self._read_scope()
            else:
                raise tokens.error("Expected an instruction, a label, a declaration or '}'.")
        tokens.index += 1

    def _read_scope(self) -> None:
        first, lists = len(self.instructions), len(self.branch_targets)
        if self._scope.depth == MOST_SCOPES:
            raise self._tokens.error(f"Scopes are nested more than {MOST_SCOPES} deep.")
        self._tokens.index += 1
        self._scope.open()
        self.read()
        renamed = self._scope.close()
        if renamed:
            # A label may be used before it stands; by now all of the scope's own names are known.
            self.instructions[first:] = [_rename(each, renamed) for each in self.instructions[first:]]
            for name, targets in list(self.branch_targets.items())[lists:]:
                self.branch_targets[name] = tuple(renamed.get(target, target) for target in targets)

    def _read_directive(self) -> None:
        tokens = self._tokens
        reader = self._directives.get(tokens.spelling)
        if reader is None:
            raise tokens.error(f"Directive '{tokens.spelling}' is not known inside a function.")
        tokens.index += 1
        reader()

    # ---- declarations

    def _declare_parameter(self, parameter: Variable) -> None:
        self._scope.unique(parameter.name)
        is_register = parameter.space == "reg"
        if is_register:
            self.registers[parameter.name] = parameter.type
        if not self._scope.declare(parameter.name, (Register if is_register else Symbol)(parameter.name)):
            raise self._tokens.error(f"The function has two parameters '{parameter.name}'.")

    def _read_registers(self) -> None:
        first = self._tokens.index
        for variable in read_variables(self._tokens, "reg"):
            if variable.size != TYPE_BYTES[variable.type]:
                raise self._tokens.error("Vector registers are not supported; use scalar registers.", first)
            name = self._scope.unique(variable.name)
            self.registers[name] = variable.type
            self._declare(variable.name, Register(name), first)

    def _variable_reader(self, space: str, *, extern: bool = False) -> Callable[[], None]:
        def read() -> None:
            first = self._tokens.index
            for variable in read_variables(self._tokens, space, extern=extern):
                name = self._scope.unique(variable.name)
                self.variables[name] = replace(variable, name=name)
                self._declare(variable.name, Symbol(name), first)

        return read

    def _refuse_variables(self) -> None:
        raise self._tokens.error(
            "Variables in .global and .const are declared before the functions of the module.", self._tokens.index - 1
        )

    def _read_extern(self) -> None:
        space = self._tokens.expect_kind("directive", "a state space")[1:]
        self._variable_reader(space, extern=True)()

    def _declare(self, name: str, operand: Operand, first: int) -> None:
        """Make a name visible; `first` is the token at which its declaration begins."""
        if not self._scope.declare(name, operand):
            spelled = self._tokens.texts[first : self._tokens.index]
            at = spelled.index(name) if name in spelled else 0
            raise self._tokens.error(f"'{name}' is declared twice in this scope.", first + at)

    # ---- lines, labels

    def _read_location(self) -> None:
        self._location = self._lines.read(self._tokens, lambda: integer(self._tokens))

    def _read_label(self) -> None:
        tokens = self._tokens
        first = tokens.index
        name = self._scope.unique(tokens.take())
        self._declare(tokens.texts[first], Symbol(name), first)
        tokens.index += 1
        if tokens.accept(".branchtargets"):
            self.branch_targets[name] = self._read_list()
        elif tokens.accept(".callprototype"):
            self.prototypes[name] = self._read_prototype()
        elif tokens.accept(".calltargets"):
            self.prototypes[name] = Prototype(targets=self._read_list())
        else:
            self.labels[name] = len(self.instructions)

    def _read_prototype(self) -> Prototype:
        """Read ``(.param .b32 _) _ (.param .b64 _)`` and what may follow, e.g. ``.noreturn``."""
        tokens = self._tokens
        returns = read_parameters(tokens) if tokens.kind == "(" else ()
        tokens.expect("_")
        parameters = read_parameters(tokens) if tokens.kind == "(" else ()
        tokens.skip_statement()
        return Prototype(returns, parameters)

    def _read_list(self) -> tuple[str, ...]:
        """Read the names of labels or functions up to and with the ``;``."""
        tokens = self._tokens
        names: list[str] = []
        while not names or tokens.accept(","):
            self.operands.unresolved.append((tokens.spelling, tokens.index))
            names.append(tokens.expect_kind("word", "a name"))
        tokens.expect(";")
        return tuple(names)

    # ---- instructions

    def _read_instruction(self) -> None:
        tokens = self._tokens
        first = tokens.index
        guard = self._read_guard() if tokens.kind == "@" else None
        opcode, modifiers = self._split_opcode(tokens.expect_kind("word", "an opcode"))
        operands = self._read_call() if opcode == "call" else self._read_operands()
        end = tokens.starts[tokens.index]
        tokens.expect(";")
        start = tokens.starts[first]
        text = " ".join(tokens.text[start:end].split())
        self.instructions.append(
            Instruction(opcode, modifiers, operands, guard, tokens.span_at(start), self._location, text)
        )

    def _read_guard(self) -> Guard:
        self._tokens.index += 1
        negated = self._tokens.accept("!")
        return Guard(self.operands.register(), negated)

    def _split_opcode(self, spelling: str) -> tuple[str, tuple[str, ...]]:
        found = self._opcodes.get(spelling)
        if found is None:
            opcode, *modifiers = spelling.split(".")
            found = self._opcodes[spelling] = opcode, tuple(modifiers)
        return found

    def _read_operands(self) -> tuple[Operand, ...]:
        tokens = self._tokens
        if tokens.kind == ";":
            return ()
        operands = [self.operands.read()]
        while tokens.kind == ",":
            tokens.index += 1
            operands.append(self.operands.read())
        return tuple(operands)

    def _read_call(self) -> tuple[Operand, ...]:
        """Bring all forms of `call` into one: returns, target, arguments, and the prototype of an indirect call."""
        operands = list(self._read_operands())
        if operands and not isinstance(operands[0], Group):
            operands.insert(0, Group(()))
        if len(operands) == 2:
            operands.append(Group(()))
        if len(operands) < 3 or not isinstance(operands[2], Group):
            raise self._tokens.error("Expected 'call (returns), target, (arguments)'.")
        return tuple(operands)


def _rename(instruction: Instruction, names: dict[str, str]) -> Instruction:
    operands = tuple(rename_symbols(operand, names) for operand in instruction.operands)
    return instruction if operands == instruction.operands else replace(instruction, operands=operands)


def rename_symbols(operand: Operand, names: dict[str, str]) -> Operand:
    """The operand with its symbols renamed where `names` has them."""
    if isinstance(operand, Symbol):
        return Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        return Address(rename_symbols(operand.base, names), operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, Group):
        return Group(tuple(rename_symbols(element, names) for element in operand.elements))
    return operand
