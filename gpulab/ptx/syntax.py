"""The records that the PTX parser makes: a `Module` of functions, each a flat list of instructions.

Spans point into the PTX text; locations point into the user's own source, from `.loc` lines. Names keep their PTX
spelling (registers with the `%`). Types and modifiers stand without their dot: ``("global", "v4", "f32")``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]|^/usr/")


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the PTX text, both 1-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source; `inlined_at` is the call site where a function was inlined."""

    file: str
    line: int
    column: int = 0
    function: str | None = None
    inlined_at: Location | None = None

    @property
    def own(self) -> Location:
        """The innermost place of the inline chain that is not in an installed package, such as CUDA's headers."""
        place: Location | None = self
        while place is not None and _INSTALLED.search(place.file):
            place = place.inlined_at
        return place or self


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register, e.g. ``%rd4``, or the sink ``_``."""

    name: str


SINK = Register("_")
"""What takes a result that nobody wants; it has no value."""


@dataclass(frozen=True, slots=True)
class Special:
    """A special register with its component, e.g. ``%tid.x``, ``%laneid``, ``%clock64``."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant operand.

    Attributes
    ----------
    value : int or float
        An int for integer literals (may be negative), a float for floating-point literals.
    bits : int or None
        The exact pattern of ``0fXXXXXXXX`` (32 bits) and ``0dXXXXXXXXXXXXXXXX`` (64 bits) literals, else None.
    """

    value: int | float
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, parameter, function or label used as an operand; `offset` in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``: the base is a register, a symbol, or None for an absolute address. `offset` in bytes."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """``{a, b}`` of vector operands, or the parenthesized lists of a `call`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """``!%p1`` as a source operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """``%r1|%p1``: a destination with a predicate destination (`setp`, `shfl`, `match`)."""

    first: Register
    second: Register


Operand = Register | Special | Immediate | Symbol | Address | Group | Negated | Pair


@dataclass(frozen=True, slots=True)
class Guard:
    """``@%p1`` or ``@!%p1`` before an instruction."""

    register: Register
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction.

    A `call` has the operands ``(Group(returns), Symbol(target) or Register, Group(arguments))``, with a fourth Symbol
    for the prototype of an indirect call. An instruction is `synthetic` if it is not in the PTX text: calls that cannot
    be inlined need some that save registers (`gpulab.ptx.calls`). Counters leave these out.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    span: Span
    location: Location | None
    text: str
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or parameter in a state space.

    Attributes
    ----------
    name : str
    space : str
        ``param``, ``global``, ``shared``, ``local`` or ``const``.
    type : str
        Element type, e.g. ``b8``, ``f32``, ``u64``.
    count : int
        Number of elements; 1 for a scalar, 0 for ``[]`` (dynamic shared memory).
    align : int
        In bytes.
    size : int
        In bytes (element size times count).
    initial : bytes or None
        Initial contents, shorter than `size` if the rest is zero.
    relocations : tuple of (int, Symbol, bool)
        Byte offset, symbol whose address is stored there, and True for a ``generic()`` address.
    extern : bool
    """

    name: str
    space: str
    type: str
    count: int
    align: int
    size: int
    initial: bytes | None = None
    relocations: tuple[tuple[int, Symbol, bool], ...] = ()
    extern: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """What an indirect call knows of the function: its parameters (``.callprototype``) or its name (``.calltargets``).

    Attributes
    ----------
    returns, parameters : tuple of Variable
        Empty if there are `targets`.
    targets : tuple of str
        The functions that may be called; empty if any of the right parameters may be.
    """

    returns: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A `.entry` or `.func` with its body.

    Attributes
    ----------
    name : str
    is_entry : bool
    parameters, returns : tuple of Variable
        In order; space ``param`` (or ``reg`` for register parameters of a `.func`).
    registers : dict of str to str
        Register name to type (``pred``, ``b32``, ``f64``, …), `.reg .b32 %r<4>` expanded. Names of inner ``{ }``
        scopes that hide an outer one are made unique.
    variables : dict of str to Variable
        Declared in the body: local depots, shared arrays, call parameters.
    instructions : tuple of Instruction
    labels : dict of str to int
        Label to the index of the instruction that follows it; may equal ``len(instructions)``.
    branch_targets : dict of str to tuple of str
        ``.branchtargets`` lists by label.
    directives : dict of str to tuple of int
        ``maxntid``, ``reqntid``, ``minnctapersm``, ``maxnreg``.
    span : Span
    prototypes : dict of str to Prototype
        Of indirect calls, by label.
    """

    name: str
    is_entry: bool
    parameters: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    registers: dict[str, str]
    variables: dict[str, Variable]
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    span: Span
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module: `functions` and module `variables` by name, the text it came from."""

    version: str
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    text: str

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels, in order."""
        return tuple(name for name, function in self.functions.items() if function.is_entry)


def symbols_in(operand: Operand) -> Iterator[Symbol]:
    """Symbols in an operand."""
    if isinstance(operand, Symbol):
        yield operand
    elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
        yield operand.base
    elif isinstance(operand, Group):
        for element in operand.elements:
            yield from symbols_in(element)
