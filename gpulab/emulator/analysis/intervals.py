"""Between which bounds integer registers stay in every launch, by a static analysis.

Compilers of Python guard every index against being negative, and widen it to 64 bits: both vanish where the analysis
proves a register non-negative. An interval holds a register's value as a signed number of its width; predicates are 0
or 1. It covers all lanes, also those that are not active, and all writes of a register together.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable

from gpulab.emulator.program import Program
from gpulab.ptx.opcodes import Form, read_registers, written_registers
from gpulab.ptx.syntax import Immediate, Instruction, Negated, Operand, Register, Special
from gpulab.ptx.types import TYPE_BYTES, is_float

Interval = tuple[int, int]
ZERO: Interval = (0, 0)
BOTH: Interval = (0, 1)

# So often an interval may grow before it is given up.
_PATIENCE = 4

_INTEGERS = {kind + bits for kind in "usb" for bits in ("16", "32", "64")}
# PTX ISA, "Special Registers", with the limits of grids and blocks (CUDA C++ Programming Guide, "Compute Capabilities").
_SPECIALS: dict[str, Interval] = {
    "%tid.x": (0, 1023),
    "%tid.y": (0, 1023),
    "%tid.z": (0, 63),
    "%ntid.x": (1, 1024),
    "%ntid.y": (1, 1024),
    "%ntid.z": (1, 64),
    "%ctaid.x": (0, 2**31 - 2),
    "%ctaid.y": (0, 65534),
    "%ctaid.z": (0, 65534),
    "%nctaid.x": (1, 2**31 - 1),
    "%nctaid.y": (1, 65535),
    "%nctaid.z": (1, 65535),
    "%laneid": (0, 31),
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def intervals(program: Program) -> dict[str, Interval]:
    """Bounds of the registers for which there are any better than those of the type.

    Parameters
    ----------
    program : Program

    Returns
    -------
    dict of str to (int, int)
        Lowest and highest value, by register.
    """
    return _Analysis(program).run()


def bounds_of(operand: Operand, found: dict[str, Interval]) -> Interval | None:
    """Bounds of a register or special register."""
    if isinstance(operand, Register):
        return found.get(operand.name)
    return _SPECIALS.get(operand.name) if isinstance(operand, Special) else None


class _Analysis:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.registers = program.function.registers
        # None: anything. Not there: nothing written yet. What may be read before it is written holds 0.
        self.found: dict[str, Interval | None] = dict.fromkeys(program.graph.blocks[0].live_in, ZERO)
        self.growths: dict[str, int] = {}

    def run(self) -> dict[str, Interval]:
        function = self.program.function
        pairs = list(zip(function.instructions, self.program.forms, strict=True))
        readers: dict[str, list[int]] = {}
        for index, pair in enumerate(pairs):
            for name in read_registers(*pair):
                readers.setdefault(name, []).append(index)
        waiting = deque(range(len(pairs)))
        queued = set(waiting)
        while waiting:
            index = waiting.popleft()
            queued.discard(index)
            written = list(written_registers(*pairs[index]))
            for name in written:
                if self._write(name, *pairs[index], len(written) == 1):
                    again = [reader for reader in readers.get(name, ()) if reader not in queued]
                    waiting.extend(again)
                    queued.update(again)
        return {name: found for name, found in self.found.items() if found is not None}

    def _write(self, name: str, instruction: Instruction, form: Form, alone: bool) -> bool:
        """Join a result to what a register may hold; whether that is news."""
        old = self.found.get(name, ZERO)
        if name in self.found and old is None:
            return False
        result = self._result(name, instruction, form) if alone else None
        if name in self.found and result is not None and old is not None:
            result = min(old[0], result[0]), max(old[1], result[1])
        if name in self.found and result == old:
            return False
        self.growths[name] = self.growths.get(name, 0) + 1
        self.found[name] = result if self.growths[name] <= _PATIENCE else None
        return True

    def _result(self, name: str, instruction: Instruction, form: Form) -> Interval | None:
        rule = _RULES.get(form.opcode)
        role = form.roles[0]
        declared = self.registers.get(name, "pred")
        if (
            rule is None
            or form.saturate
            or form.carry_out
            or form.relu
            or not _is_plain(role.type)
            or _is_other(declared, role.type)
        ):
            return None
        sources = []
        for operand, its_role in list(zip(instruction.operands, form.roles, strict=False))[1:]:
            source = self._source(operand, its_role.type)
            if source is None:
                # A few results are bounded whatever a source is.
                source = _limits(its_role.type) if _is_plain(its_role.type) else (0, -1)
                if source[0] > source[1]:
                    return None
            sources.append(source)
        found = rule(form, sources)
        if found is None or role.type == "pred":
            return found
        low, high = _limits("s" + role.type[1:])
        return found if low <= found[0] and found[1] <= high and found != (low, high) else None

    def _source(self, operand: Operand, type_name: str) -> Interval | None:
        """Bounds of an operand as the instruction reads it; None if that can be anything."""
        if not _is_plain(type_name):
            return None
        if isinstance(operand, Negated):
            low, high = self.found.get(operand.register.name) or BOTH
            return 1 - high, 1 - low
        if isinstance(operand, Register):
            found = self.found.get(operand.name)
            same = not _is_other(self.registers.get(operand.name, "pred"), type_name)
            # The sign of an unsigned number is another matter.
            signless = found is None or (type_name[0] == "u" and found[0] < 0)
            return found if same and not signless else None
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            value = _as_read(operand.value, type_name)
            return value, value
        return _SPECIALS.get(operand.name) if isinstance(operand, Special) else None


def _is_plain(type_name: str) -> bool:
    """Whether values of a type are single integers or predicates."""
    return type_name == "pred" or type_name in _INTEGERS


def _is_other(declared: str, type_name: str) -> bool:
    """Whether a register is wider or narrower than what an instruction reads or writes there."""
    return TYPE_BYTES[declared] != TYPE_BYTES[type_name] or is_float(declared)


def _limits(type_name: str) -> Interval:
    if type_name == "pred":
        return BOTH
    bits = 8 * TYPE_BYTES[type_name]
    return (0, (1 << bits) - 1) if type_name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _as_read(value: int, type_name: str) -> int:
    low, high = _limits(type_name)
    value &= (1 << (8 * TYPE_BYTES[type_name])) - 1
    return value if value <= high else value - (high - low + 1)


# ---- one rule for each opcode; what leaves the type's range is given up afterwards

_Rule = Callable[[Form, list[Interval]], "Interval | None"]
_RULES: dict[str, _Rule] = {}


def _rule(*opcodes: str) -> Callable[[_Rule], _Rule]:
    def enter(rule: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(opcodes, rule))
        return rule

    return enter


@_rule("mov")
def _copy(form: Form, sources: list[Interval]) -> Interval | None:
    return sources[0] if len(sources) == 1 else None


@_rule("cvt")
def _convert(form: Form, sources: list[Interval]) -> Interval | None:
    return sources[0] if len(sources) == 1 else None


@_rule("add")
def _add(form: Form, sources: list[Interval]) -> Interval | None:
    (a, b), (c, d) = sources
    return a + c, b + d


@_rule("sub")
def _sub(form: Form, sources: list[Interval]) -> Interval | None:
    (a, b), (c, d) = sources
    return a - d, b - c


@_rule("neg")
def _neg(form: Form, sources: list[Interval]) -> Interval | None:
    return -sources[0][1], -sources[0][0]


@_rule("mul")
def _mul(form: Form, sources: list[Interval]) -> Interval | None:
    products = [a * b for a in sources[0] for b in sources[1]]
    return (min(products), max(products)) if form.mode in ("lo", "wide") else None


@_rule("mad")
def _mad(form: Form, sources: list[Interval]) -> Interval | None:
    product = _mul(form, sources[:2])
    return None if product is None else _add(form, [product, sources[2]])


@_rule("shl")
def _shl(form: Form, sources: list[Interval]) -> Interval | None:
    (a, b), (amount, most) = sources
    return (a << amount, b << amount) if amount == most and 0 <= amount < 64 else None


@_rule("shr")
def _shr(form: Form, sources: list[Interval]) -> Interval | None:
    (a, b), (amount, most) = sources
    return (a >> amount, b >> amount) if amount == most and 0 <= amount and (a >= 0 or form.type[0] == "s") else None  # type: ignore[index]


@_rule("and")
def _and(form: Form, sources: list[Interval]) -> Interval | None:
    if form.type == "pred":
        return sources[0][0] & sources[1][0], sources[0][1] & sources[1][1]
    tops = []
    for (low, high), (other, last) in (sources, sources[::-1]):
        if low >= 0:
            # No bit above the highest of a non-negative number is left, and none that a constant lacks.
            kept = other & ((1 << high.bit_length()) - 1) if other == last else high
            tops.append(min(high, kept))
    return (0, min(tops)) if tops else None


@_rule("or", "xor")
def _or(form: Form, sources: list[Interval]) -> Interval | None:
    if ZERO in sources:
        return sources[1 - sources.index(ZERO)]
    if any(low < 0 for low, _ in sources):
        return None
    return 0, (1 << max(high.bit_length() for _, high in sources)) - 1


@_rule("not")
def _not(form: Form, sources: list[Interval]) -> Interval | None:
    low, high = sources[0]
    return (1 - high, 1 - low) if form.type == "pred" else (~high, ~low)


@_rule("min", "max")
def _extreme(form: Form, sources: list[Interval]) -> Interval | None:
    choose = min if form.opcode == "min" else max
    return choose(sources[0][0], sources[1][0]), choose(sources[0][1], sources[1][1])


@_rule("div", "rem")
def _divide(form: Form, sources: list[Interval]) -> Interval | None:
    (low, high), (divisor, most) = sources
    if low < 0 or divisor <= 0:
        return None
    return (low // most, high // divisor) if form.opcode == "div" else (0, min(high, most - 1))


@_rule("selp")
def _select(form: Form, sources: list[Interval]) -> Interval | None:
    first, second, (low, high) = sources
    # A constant in the place of the predicate need not be 0 or 1.
    chosen = [second] * (low <= 0 <= high) + [first] * ((low, high) != (0, 0))
    return min(low for low, _ in chosen), max(high for _, high in chosen)


@_rule("setp")
def _compare(form: Form, sources: list[Interval]) -> Interval | None:
    compare = _COMPARISONS.get(form.comparison or "")
    if compare is None or form.boolean or len(sources) != 2:
        return BOTH
    (a, b), (c, d) = sources
    if form.comparison in ("eq", "ne"):
        apart, same = b < c or d < a, a == b == c == d
        return (int(same == (form.comparison == "eq")),) * 2 if apart or same else BOTH
    answers = {compare(x, y) for x in (a, b) for y in (c, d)}
    return (int(min(answers)), int(max(answers)))


BOUNDED_OPCODES = frozenset(_RULES)
"""Opcodes whose results may have bounds; none of them does anything else than to write a register."""
