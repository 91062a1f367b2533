"""Names of a PTX function: what an identifier means where it stands.

Scopes ``{ }`` nest, and inline assembly declares the same short names again and again (``%temp``, ``%p1``, ``param0``).
The flat `Function` record has one name space, so a name that is taken gets a unique spelling here.
"""

from __future__ import annotations

from gpulab.ptx.syntax import Operand, Symbol


class Scope:
    """The visible names, with an undo list for each open ``{``."""

    def __init__(self) -> None:
        self._visible: dict[str, Operand] = {}
        self._taken: set[str] = set()
        self._hidden: list[dict[str, Operand | None]] = [{}]

    @property
    def depth(self) -> int:
        """How many scopes are open, the function's own among them."""
        return len(self._hidden)

    def lookup(self, name: str) -> Operand | None:
        """The operand that a name stands for, or None if it is not declared (yet)."""
        return self._visible.get(name)

    def unique(self, name: str) -> str:
        """Reserve a spelling for a new name: itself where nothing else has it."""
        spelling, copy = name, 1
        while spelling in self._taken:
            copy += 1
            spelling = f"{name}.{copy}"
        self._taken.add(spelling)
        return spelling

    def declare(self, name: str, operand: Operand) -> bool:
        """Make a name visible to the end of the scope; False if this very scope has it already."""
        if name in self._hidden[-1]:
            return False
        self._hidden[-1][name] = self._visible.get(name)
        self._visible[name] = operand
        return True

    def open(self) -> None:
        """Enter a ``{``."""
        self._hidden.append({})

    def close(self) -> dict[str, str]:
        """Leave a scope; return the labels and variables of it that were renamed, by their name in the text."""
        renamed = {}
        for name, outer in self._hidden.pop().items():
            inner = self._visible.pop(name)
            if outer is not None:
                self._visible[name] = outer
            if isinstance(inner, Symbol) and inner.name != name:
                renamed[name] = inner.name
        return renamed
