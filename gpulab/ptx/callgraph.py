"""Who calls whom: which functions a kernel may reach, and which of them cannot be inlined.

A call by name can be inlined unless the function can reach itself. A call through a pointer may reach every function of
the module whose address is taken anywhere and whose parameters fit: the pointer may come from memory that another kernel
has written, as the virtual functions of an object do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx.syntax import Function, Instruction, Module, Prototype, Symbol, Variable, symbols_in

CODE_START = 8 << 40
"""Where function addresses begin: in a window of addresses that no memory has (`emulator.memory`)."""

CODE_STEP = 16
"""Distance of functions; even, for a pointer to a member of a C++ class keeps a flag in its lowest bit."""

FLAT_LIMIT = 20_000
"""Instructions of a kernel above which functions that are called from several places are not copied to each of them."""

SMALL = 40
"""Functions of so few instructions are copied all the same."""

_WIDEST = 8
Pieces = tuple[tuple[int, int], ...]
Signature = tuple[tuple[Pieces, ...], tuple[Pieces, ...]]


def function_addresses(module: Module) -> dict[str, int]:
    """The address that each function of a module has as a value; numbers of their own, nothing lies there."""
    return {name: CODE_START + CODE_STEP * number for number, name in enumerate(module.functions, 1)}


def pieces(variable: Variable) -> Pieces:
    """Offset and size, in bytes, of the registers through which a parameter is passed."""
    found, offset = [], 0
    while offset < variable.size:
        size = min(_WIDEST, variable.align)
        while offset + size > variable.size:
            size //= 2
        found.append((offset, size))
        offset += size
    return tuple(found)


def signature(function: Function | Prototype) -> Signature:
    """What must be equal for a call through a pointer: the pieces of all results and parameters."""
    return tuple(map(pieces, function.returns)), tuple(map(pieces, function.parameters))


@dataclass(frozen=True)
class CallGraph:
    """The functions of a module as they call each other."""

    module: Module
    _callees: dict[str, frozenset[str]] = field(default_factory=dict)
    _reached: dict[str, frozenset[str]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def _taken(self) -> dict[str, Signature]:
        """Functions with a body whose address is a value somewhere in the module, in its order."""
        named = {symbol.name for variable in self.module.variables.values() for _, symbol, _ in variable.relocations}
        for function in self.module.functions.values():
            for instruction in function.instructions:
                place = 2 if instruction.opcode == "call" else 0
                named.update(symbol.name for each in instruction.operands[place:] for symbol in symbols_in(each))
        return {
            name: signature(each)
            for name, each in self.module.functions.items()
            if name in named and each.instructions and not each.is_entry
        }

    def targets(self, function: Function, call: Instruction) -> tuple[str, ...]:
        """Functions that a call may reach, in the module's order: one if it is by name."""
        target = call.operands[1]
        if isinstance(target, Symbol):
            return (target.name,)
        listed = self._listed(function, call)
        if listed.targets:
            return tuple(name for name in listed.targets if self._has_body(name))
        wanted = signature(listed)
        return tuple(name for name, found in self._taken.items() if found == wanted)

    def prototype(self, function: Function, call: Instruction) -> Function | Prototype:
        """A record with the parameters and results of the functions that a call may reach."""
        targets = self.targets(function, call)
        return self.module.functions[targets[0]] if targets else self._listed(function, call)

    def _listed(self, function: Function, call: Instruction) -> Prototype:
        """What stands behind the arguments: a prototype, a list of functions, or a table of them in memory."""
        label = call.operands[3] if len(call.operands) > 3 else None
        found = function.prototypes.get(label.name) if isinstance(label, Symbol) else None
        table = self.module.variables.get(label.name) if isinstance(label, Symbol) else None
        if found is None and table is not None:
            found = Prototype(targets=tuple(symbol.name for _, symbol, _ in table.relocations))
        if found is None:
            raise UnsupportedInstruction(
                f"PTX line {call.span.line}: '{call.text}': a call through a register needs a .callprototype or a list of "
                "the functions that it may call.",
                call.span.line,
            )
        return found

    def _has_body(self, name: str) -> bool:
        return name in self.module.functions and bool(self.module.functions[name].instructions)

    def callees(self, name: str) -> frozenset[str]:
        """Functions with a body that a function may call itself."""
        if name not in self._callees:
            function = self.module.functions[name]
            calls = (each for each in function.instructions if each.opcode == "call")
            targets = (target for call in calls for target in self.targets(function, call))
            self._callees[name] = frozenset(filter(self._has_body, targets))
        return self._callees[name]

    def reached(self, name: str) -> frozenset[str]:
        """Functions that a function may reach by one call or more; itself among them if it is recursive."""
        if name not in self._reached:
            found: set[str] = set()
            waiting = [name]
            while waiting:
                new = self.callees(waiting.pop()) - found
                found |= new
                waiting += new
            self._reached[name] = frozenset(found)
        return self._reached[name]

    def is_recursive(self, name: str) -> bool:
        """Whether a function can reach itself."""
        return name in self.reached(name)

    def flat_size(self, name: str) -> int:
        """Instructions of a function with all that can be inlined in it."""
        if name not in self._sizes:
            function = self.module.functions[name]
            called = [each.operands[1] for each in function.instructions if each.opcode == "call"]
            names = [each.name for each in called if isinstance(each, Symbol) and self._has_body(each.name)]
            inner = sum(self.flat_size(each) for each in names if not self.is_recursive(each))
            self._sizes[name] = len(function.instructions) + inner
        return self._sizes[name]

    def too_many(self, entry: str) -> frozenset[str]:
        """Functions to keep in one body for size: copies of them would make the kernel very large."""
        if self.flat_size(entry) <= FLAT_LIMIT:
            return frozenset()
        sites = Counter(
            target
            for name in (entry, *self.reached(entry))
            for call in self.module.functions[name].instructions
            if call.opcode == "call"
            for target in self.targets(self.module.functions[name], call)
        )
        return frozenset(name for name in self.reached(entry) if sites[name] > 1 and self.flat_size(name) > SMALL)

    def same_cycle(self, name: str, other: str) -> bool:
        """Whether two functions can reach each other."""
        return other in self.reached(name) and name in self.reached(other)
