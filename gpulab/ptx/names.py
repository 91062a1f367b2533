"""Names of a function's registers, variables and labels where its body stands in another one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gpulab.ptx.syntax import Address, Group, Negated, Operand, Pair, Register, Symbol


@dataclass(slots=True)
class Names:
    """How names of a function are spelled in the flat kernel."""

    suffix: str = ""
    symbols: dict[str, str] = field(default_factory=dict)

    @property
    def return_label(self) -> str | None:
        """Where a `ret` leads; None in the kernel itself."""
        return f"return{self.suffix}" if self.suffix else None

    def register(self, register: Register) -> Register:
        """A register of the function in the flat kernel."""
        return Register(register.name + self.suffix) if self.suffix and register.name != "_" else register

    def label(self, name: str) -> str:
        """A label of the function in the flat kernel."""
        return name + self.suffix

    def operand(self, operand: Operand) -> Operand:
        """An operand with all its names replaced."""
        if not self.suffix:
            return operand
        return map_operand(operand, self.register, lambda name: self.symbols.get(name, name))


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


def plain_name(mangled: str) -> str:
    """The function's own name of what a compiler made of it: ``f`` of ``_ZN8__main__1fB2v1Ex`` (Itanium C++ ABI)."""
    name, rest = mangled, re.sub("^_ZN?K?L?", "", mangled)
    while digits := re.match(r"\d+", rest):
        stop = digits.end() + int(digits[0])
        name, rest = rest[digits.end() : stop], rest[stop:]
    return name
