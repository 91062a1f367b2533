"""PTX text to a `Module` (PTX ISA 4): directives, module variables, functions and kernels."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from gpulab.ptx.body import BodyReader
from gpulab.ptx.debuginfo import LineTable, skip_section
from gpulab.ptx.declarations import LINKING, integer, read_parameters, read_variables
from gpulab.ptx.lexer import END, Tokens, syntax_error, tokenize
from gpulab.ptx.syntax import Function, Instruction, Module, Span, Symbol, Variable

_NUMBERED = ("maxntid", "reqntid", "minnctapersm", "maxnreg", "reqnctapercluster", "maxclusterrank")
_BARE = ("noreturn", "explicitcluster", "blocksareclusters")

CONSTANT_BYTES = 64 << 10
"""What a module's variables in .const can have together (CUDA C++ Programming Guide, technical specifications)."""


def parse(text: str) -> Module:
    """Parse the text of a PTX module.

    Parameters
    ----------
    text : str
        PTX as a compiler writes it, ASCII.

    Returns
    -------
    Module

    Raises
    ------
    PtxSyntaxError
        With line, column and a caret, if the text is no PTX.
    """
    return _ModuleReader(text.rstrip("\0")).read()


class _ModuleReader:
    def __init__(self, text: str) -> None:
        self._tokens: Tokens = tokenize(text)
        self._lines = LineTable(text)
        self._version = ""
        self._target = ""
        self._functions: dict[str, Function] = {}
        self._variables: dict[str, Variable] = {}
        self._aliases: dict[str, str] = {}
        self._unresolved: list[tuple[str, int]] = []
        self._addresses: list[tuple[str, int]] = []
        self._constant_bytes = 0

    def read(self) -> Module:
        tokens = self._tokens
        while tokens.kind != END:
            self._read_statement(tokens.expect_kind("directive", "a directive such as .entry")[1:])
        if not self._version:
            raise tokens.error("A PTX module begins with .version and .target, but none came.")
        self._check_names()
        for name, other in self._aliases.items():
            self._functions[name] = replace(self._functions[other], name=name)
        return Module(self._version, self._target, self._functions, self._variables, tokens.text)

    def _read_statement(self, directive: str) -> None:
        tokens = self._tokens
        if directive == "version":
            self._version = tokens.expect_kind("number", "a version")
        elif directive == "target":
            self._read_target()
        elif directive == "address_size":
            if integer(tokens) != 64:
                raise tokens.error("Only 64-bit addresses are supported.", tokens.index - 1)
        elif directive == "file":
            self._skip_file()
        elif directive == "section":
            skip_section(tokens)
        elif directive == "pragma":
            tokens.skip_statement()
        elif directive == "alias":
            self._read_alias()
        else:
            self._read_definition(directive)

    def _read_target(self) -> None:
        self._target = self._tokens.expect_kind("word", "a target such as sm_80")
        while self._tokens.accept(","):
            self._tokens.take()

    def _read_alias(self) -> None:
        """Read ``.alias one, other;``: a name that was declared without a body has that of another function."""
        tokens = self._tokens
        name = tokens.expect_kind("word", "a function name")
        tokens.expect(",")
        other = tokens.expect_kind("word", "a function name")
        tokens.expect(";")
        if name not in self._functions or other not in self._functions:
            raise tokens.error(".alias needs two functions that are declared before it.", tokens.index - 2)
        self._aliases[name] = other

    def _skip_file(self) -> None:
        integer(self._tokens)
        self._tokens.expect_kind("string", "a file name")
        while self._tokens.accept(","):
            integer(self._tokens)

    def _read_definition(self, directive: str) -> None:
        tokens = self._tokens
        linking = set()
        while directive in LINKING:
            linking.add(directive)
            directive = tokens.expect_kind("directive", ".entry, .func or a state space")[1:]
        if directive in ("entry", "func"):
            self._read_function(is_entry=directive == "entry")
        elif directive in ("global", "const", "shared"):
            first = tokens.index
            for variable in read_variables(tokens, directive, extern="extern" in linking):
                self._add_variable(variable, first)
        else:
            raise tokens.error(f"Directive '.{directive}' is not known at module level.", tokens.index - 1)

    def _add_variable(self, variable: Variable, first: int) -> None:
        """Take a variable, whose declaration begins at a token; ``.extern`` ones are declared again where they are."""
        before = self._variables.get(variable.name)
        if before is not None and not (before.extern or variable.extern):
            raise self._tokens.error(f"'{variable.name}' is declared twice.", first)
        if before is not None and (before.space, before.type) != (variable.space, variable.type):
            raise self._tokens.error(f"'{variable.name}' is declared before with another space or type.", first)
        if before is None or before.extern:
            self._variables[variable.name] = variable
        self._addresses += [(symbol.name, first) for _, symbol, _ in variable.relocations]
        if variable.space == "const":
            self._constant_bytes += variable.size
        if self._constant_bytes > CONSTANT_BYTES:
            message = (
                f"A module has at most {CONSTANT_BYTES >> 10} KiB of constant memory. Use .global variables for more."
            )
            raise self._tokens.error(message, first)

    def _read_function(self, *, is_entry: bool) -> None:
        tokens = self._tokens
        span = tokens.span(tokens.index - 1)
        returns = read_parameters(tokens) if tokens.kind == "(" else ()
        name = tokens.expect_kind("word", "a function name")
        parameters = read_parameters(tokens) if tokens.kind == "(" else ()
        directives = self._read_function_directives()
        if tokens.accept(";"):
            self._functions.setdefault(name, _prototype(name, is_entry, parameters, returns, span))
            return
        if name in self._functions and self._functions[name].instructions:
            raise syntax_error(tokens.text, span, f"'{name}' is defined twice.")
        tokens.expect("{")
        body = BodyReader(tokens, self._lines, returns + parameters)
        body.read()
        self._unresolved += [
            (each, index)
            for each, index in body.operands.unresolved
            if each not in body.labels and each not in body.branch_targets and each not in body.prototypes
        ]
        self._functions.pop(name, None)
        self._functions[name] = Function(
            name=name,
            is_entry=is_entry,
            parameters=parameters,
            returns=returns,
            registers=body.registers,
            variables=body.variables,
            instructions=tuple(body.instructions),
            labels=body.labels,
            span=span,
            branch_targets=body.branch_targets,
            directives=directives,
            prototypes=body.prototypes,
        )
        self._check_branches(self._functions[name])

    def _read_function_directives(self) -> dict[str, tuple[int, ...]]:
        tokens = self._tokens
        found: dict[str, tuple[int, ...]] = {}
        while tokens.kind == "directive":
            word = tokens.take()[1:]
            if word in _NUMBERED:
                values = [integer(tokens)]
                while tokens.accept(","):
                    values.append(integer(tokens))
                found[word] = tuple(values)
            elif word == "pragma":
                tokens.skip_statement()
            elif word not in _BARE:
                raise tokens.error(f"Directive '.{word}' is not known for a function.", tokens.index - 1)
        return found

    def _check_branches(self, function: Function) -> None:
        for name, targets in function.branch_targets.items():
            unknown = [target for target in targets if target not in function.labels]
            if unknown:
                message = f"'{unknown[0]}' in the list {name} is no label of this function."
                raise syntax_error(self._tokens.text, function.span, message)
        for instruction in function.instructions:
            if instruction.opcode == "bra":
                self._check_branch(instruction, 0, function.labels, "a label of this function")
            elif instruction.opcode == "brx":
                self._check_branch(instruction, 1, function.branch_targets, "a list of labels (.branchtargets)")

    def _check_branch(self, instruction: Instruction, place: int, known: Container[str], what: str) -> None:
        target = instruction.operands[place] if len(instruction.operands) > place else None
        if not isinstance(target, Symbol) or target.name not in known:
            raise syntax_error(self._tokens.text, instruction.span, f"'{instruction.text}' needs {what}.")

    def _check_names(self) -> None:
        for name, index in self._unresolved:
            if name not in self._variables and name not in self._functions:
                raise self._tokens.error(f"'{name}' is not declared.", index)
        for name, index in self._addresses:
            variable = self._variables.get(name)
            if name not in self._functions and (variable is None or variable.space not in ("global", "const")):
                message = (
                    f"'{name}' is no function and no variable in .global or .const, so it has no address to begin with."
                )
                raise self._tokens.error(message, index)


def _prototype(
    name: str, is_entry: bool, parameters: tuple[Variable, ...], returns: tuple[Variable, ...], span: Span
) -> Function:
    """A function without a body: another module's, or a built-in such as `vprintf`."""
    return Function(name, is_entry, parameters, returns, {}, {}, (), {}, span)
