"""Operands of instructions (PTX ISA 6)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gpulab.ptx.declarations import integer
from gpulab.ptx.lexer import Tokens
from gpulab.ptx.literals import negative, number
from gpulab.ptx.scope import Scope
from gpulab.ptx.syntax import SINK, Address, Group, Immediate, Negated, Operand, Pair, Register, Special, Symbol

_VECTOR_SPECIALS = "%tid %ntid %ctaid %nctaid %clusterid %nclusterid %cluster_ctaid %cluster_nctaid".split()
_SCALAR_SPECIALS = """
    %laneid %warpid %nwarpid %smid %nsmid %gridid %clock %clock_hi %clock64 %globaltimer %globaltimer_lo
    %globaltimer_hi %lanemask_eq %lanemask_le %lanemask_lt %lanemask_ge %lanemask_gt %dynamic_smem_size %total_smem_size
    %aggr_smem_size %is_explicit_cluster %cluster_ctarank %cluster_nctarank %reserved_smem_offset_begin
    %reserved_smem_offset_end %reserved_smem_offset_cap %current_graph_exec"""
_NUMBERED_SPECIALS = {"%envreg": 32, "%pm": 8, "%reserved_smem_offset_": 2}
SPECIALS = {
    name: Special(name)
    for name in (
        *_SCALAR_SPECIALS.split(),
        *(f"{name}.{axis}" for name in _VECTOR_SPECIALS for axis in "xyz"),
        *(f"{name}{index}" for name, count in _NUMBERED_SPECIALS.items() for index in range(count)),
        *(f"%pm{index}_64" for index in range(_NUMBERED_SPECIALS["%pm"])),
    )
}
"""The special registers (PTX ISA 10) by name."""

MOST_NESTED = 4
"""How deep operands are nested at most: a group, as an element of one, as a texture's coordinates."""
_CONSTANTS = {"WARP_SZ": Immediate(32)}


class OperandReader:
    """Reads operands, resolves their names, and remembers those that must be declared further on."""

    def __init__(self, tokens: Tokens, scope: Scope) -> None:
        self._tokens = tokens
        self._scope = scope
        self._depth = 0
        self._numbers: dict[str, Immediate] = {}
        self.unresolved: list[tuple[str, int]] = []
        """Names used before a declaration, with the index of the token: labels, functions, module variables."""

    def read(self) -> Operand:
        """Read one operand."""
        tokens = self._tokens
        kind = tokens.kind
        if kind == "word":
            return self._named()
        if kind == "number":
            return self._constant()
        if kind == "[":
            return self._address()
        if kind == "-":
            tokens.index += 1
            return negative(self._constant())
        if kind == "!":
            tokens.index += 1
            return Negated(self.register())
        if kind in ("{", "("):
            return self.group()
        raise tokens.error("Expected an operand.")

    def group(self) -> Group:
        """Read ``{a, b}`` or ``(a, b)``."""
        tokens = self._tokens
        close = "}" if tokens.take() == "{" else ")"
        elements = []
        with self._deeper():
            while tokens.spelling != close:
                elements.append(self.read())
                if not tokens.accept(","):
                    break
        tokens.expect(close)
        return Group(tuple(elements))

    @contextlib.contextmanager
    def _deeper(self) -> Iterator[None]:
        """What is read meanwhile stands in braces, one level deeper."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._tokens.error("No operand has so many braces in braces.")
        yield
        self._depth -= 1

    def register(self, *, written: bool = False) -> Register:
        """Read a register; the sink ``_`` is one only where it is written."""
        tokens = self._tokens
        found = self._resolve(tokens.expect_kind("word", "a register"))
        if not isinstance(found, Register) or (found == SINK and not written):
            raise tokens.error(f"'{tokens.texts[tokens.index - 1]}' is not a declared register.", tokens.index - 1)
        return found

    def _named(self) -> Operand:
        """Read a name, with ``|%p1`` behind a register or ``+4`` behind a symbol."""
        tokens = self._tokens
        found = self._resolve(tokens.take())
        follows = tokens.kind
        if follows == "|" and isinstance(found, Register):
            tokens.index += 1
            return Pair(found, self.register(written=True))
        if follows in "+-" and isinstance(found, Symbol):
            return Symbol(found.name, self._offset())
        return found

    def _resolve(self, name: str) -> Operand:
        found = self._scope.lookup(name) or SPECIALS.get(name) or _CONSTANTS.get(name)
        if found is not None:
            return found
        if name == "_":
            return SINK
        if name[0] == "%":
            raise self._tokens.error(f"Register '{name}' is not declared.", self._tokens.index - 1)
        self.unresolved.append((name, self._tokens.index - 1))
        return Symbol(name)

    def _constant(self) -> Immediate:
        spelling = self._tokens.expect_kind("number", "a number")
        found = self._numbers.get(spelling)
        if found is None:
            found = self._numbers[spelling] = number(spelling)
        return found

    def _address(self) -> Address | Group:
        """Read ``[base+offset]``. A texture's ``[name, {coordinates}]`` becomes a Group, which no instruction takes."""
        tokens = self._tokens
        tokens.index += 1
        if tokens.kind in ("number", "-"):
            address = Address(None, integer(tokens))
        else:
            base = self._resolve(tokens.expect_kind("word", "a register or a name"))
            if not isinstance(base, (Register, Symbol)) or base == SINK:
                raise tokens.error("An address needs a register or a name.", tokens.index - 1)
            address = Address(base, self._offset())
        if tokens.accept(","):
            with self._deeper():
                rest = self.read()
            tokens.expect("]")
            return Group((address, rest))
        tokens.expect("]")
        return address

    def _offset(self) -> int:
        if self._tokens.accept("+"):
            return integer(self._tokens)
        return integer(self._tokens) if self._tokens.kind == "-" else 0
