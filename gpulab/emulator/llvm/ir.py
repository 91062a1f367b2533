"""A small writer of LLVM IR text, polymorphic in the number of lanes.

A `Value` is a scalar (``lanes == 1``) or a vector; every operation broadcasts scalars to the lanes of its other operands.
So one lowering function serves uniform registers (scalar code) and per-lane registers (`<32 x T>` code).
Integer types are ``i1`` to ``i128``; floats ``half``, ``float``, ``double``; pointers ``ptr``. Text is written directly
because building it is several times faster than building IR objects, and compile time is felt in a notebook.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpulab.emulator.llvm.values import (
    FLOAT_BITS,
    Value,
    bits_of,
    constant,
    constants,
    int_of,
    lane_numbers,
    mangled,
    splat_constant,
    type_text,
)

__all__ = [
    "FLOAT_BITS",
    "Builder",
    "IrModule",
    "Value",
    "bits_of",
    "constant",
    "constants",
    "int_of",
    "lane_numbers",
    "mangled",
    "splat_constant",
    "type_text",
]


@dataclass
class IrModule:
    """A module under construction: declarations and function texts by name."""

    declarations: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The module as LLVM assembly."""
        wanted = [text for name, text in self.declarations.items() if name not in self.functions]
        return "\n".join([*wanted, *self.functions.values(), ""])


class Builder:
    """Writes one function.

    Parameters
    ----------
    module : IrModule
    name : str
    result : str
        LLVM result type, e.g. ``i32`` or ``void``.
    parameters : tuple of (str, str)
        Name and LLVM type of each parameter.
    attributes : str
        Put behind the parameter list.
    linkage : str
        ``internal`` for helpers of the module.
    """

    def __init__(
        self,
        module: IrModule,
        name: str,
        result: str,
        parameters: tuple[tuple[str, str], ...],
        attributes: str = "nounwind",
        linkage: str = "",
    ) -> None:
        self.module = module
        self.name = name
        listed = ", ".join(f"{kind} %{parameter}" for parameter, kind in parameters)
        self.header = f"define {linkage} {result} @{name}({listed}) {attributes} {{"
        self.entry: list[str] = []
        self.lines: list[str] = []
        self._count = 0

    # Structure

    def argument(self, name: str, element: str, lanes: int = 1) -> Value:
        """A parameter as a value."""
        return Value(element, lanes, f"%{name}")

    def fresh(self, hint: str = "L") -> str:
        """A new name, for a label."""
        self._count += 1
        return f"{hint}.{self._count}"

    def emit(self, line: str) -> None:
        """Append one line."""
        self.lines.append(line)

    def assign(self, element: str, lanes: int, text: str) -> Value:
        """Append an instruction that has a result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {text}")
        return Value(element, lanes, name)

    def alloca(self, element: str, lanes: int = 1, count: int = 1) -> Value:
        """Stack memory for the whole function."""
        self._count += 1
        name = f"%m{self._count}"
        self.entry.append(f"{name} = alloca {type_text(element, lanes)}, i32 {count}, align 64")
        return Value("ptr", 1, name)

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{name}:")

    def br(self, target: str) -> None:
        """Jump."""
        self.lines.append(f"br label %{target}")

    def cond(self, condition: Value, yes: str, no: str) -> None:
        """Branch on a scalar i1."""
        self.lines.append(f"br i1 {condition.text}, label %{yes}, label %{no}")

    @contextmanager
    def if_(self, condition: Value) -> Iterator[None]:
        """Code that runs when a scalar i1 holds."""
        yes, join = self.fresh("then"), self.fresh("join")
        self.cond(condition, yes, join)
        self.label(yes)
        yield
        self.br(join)
        self.label(join)

    def go_if(self, condition: Value, target: str) -> None:
        """Jump to `target` if a scalar i1 holds, else continue."""
        after = self.fresh("next")
        self.cond(condition, target, after)
        self.label(after)

    @contextmanager
    def loop(self) -> Iterator[str]:
        """An endless loop; yields the label to jump to (`go_if`) for leaving it."""
        head, leave = self.fresh("loop"), self.fresh("leave")
        self.br(head)
        self.label(head)
        yield leave
        self.br(head)
        self.label(leave)

    @contextmanager
    def bits(self, mask: Value) -> Iterator[Value]:
        """Code that runs for each set bit of an integer, lowest first; yields the bit's number."""
        left = self.variable(mask)
        with self.loop() as leave:
            now = self.load(mask.type, left)
            self.go_if(self.is_("eq", now, 0), leave)
            self.store(self.and_(now, self.sub(now, 1)), left)
            yield self.count_trailing_zeros(now)

    def variable(self, initial: Value) -> Value:
        """Stack memory that holds a value."""
        where = self.alloca(initial.type, initial.lanes)
        self.store(initial, where)
        return where

    def ret(self, value: Value | None = None) -> None:
        """Return."""
        self.lines.append(f"ret {value.ir}" if value else "ret void")

    def finish(self) -> None:
        """Put the function into its module."""
        body = ["entry:", *self.entry, "br label %begin", "begin:", *self.lines, "}"]
        self.module.functions[self.name] = "\n".join([self.header, *body])

    # Shapes

    def widen(self, value: Value, lanes: int = 32) -> Value:
        """Broadcast a scalar; a vector stays as it is."""
        if value.lanes == lanes or lanes == 1:
            return value
        if value.constant:
            return splat_constant(value, lanes)
        whole = type_text(value.type, lanes)
        first = self.assign(value.type, lanes, f"insertelement {whole} poison, {value.ir}, i32 0")
        return self.assign(
            value.type, lanes, f"shufflevector {first.ir}, {whole} poison, <{lanes} x i32> zeroinitializer"
        )

    def same(self, *values: Value) -> tuple[list[Value], int]:
        """Broadcast all to the widest."""
        lanes = max(value.lanes for value in values)
        return [self.widen(value, lanes) for value in values], lanes

    def shuffle(self, first: Value, second: Value, order: list[int]) -> Value:
        """Lanes of two vectors in a constant order."""
        mask = "<" + ", ".join(f"i32 {i}" for i in order) + ">"
        kind = type_text("i32", len(order))
        return self.assign(first.type, len(order), f"shufflevector {first.ir}, {second.ir}, {kind} {mask}")

    def extract(self, vector: Value, lane: Value) -> Value:
        """One lane."""
        if vector.lanes == 1:
            return vector
        return self.assign(vector.type, 1, f"extractelement {vector.ir}, {lane.ir}")

    def hidden(self, vector: Value) -> Value:
        """A vector in memory, for loads of single lanes: the optimizer must not turn them into (slower) extractions."""
        where = self.variable(vector)
        self.emit(f'call void asm sideeffect "", "r,~{{memory}}"({where.ir})')
        return where

    def load_each(self, element: str, pointers: list[Value]) -> Value:
        """A vector from one load for each lane. Gather instructions are slower than that on many processors."""
        result = Value(element, len(pointers), "poison")
        for lane, pointer in enumerate(pointers):
            value = self.load(element, pointer)
            result = self.assign(element, len(pointers), f"insertelement {result.ir}, {value.ir}, i32 {lane}")
        return result

    # Operations

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """``add``, ``fmul``, ``and``, ``shl`` … on two values of one type."""
        (a, b), lanes = self.same(a, b)
        return self.assign(a.type, lanes, f"{op} {a.ir}, {b.text}")

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """`icmp` for integers (``slt`` …), `fcmp` for floats (``olt`` …)."""
        (a, b), lanes = self.same(a, b)
        op = "fcmp" if a.type in FLOAT_BITS else "icmp"
        return self.assign("i1", lanes, f"{op} {predicate} {a.ir}, {b.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``condition ? a : b``, per lane."""
        if condition.lanes == 1:
            (a, b), lanes = self.same(a, b)
        else:
            (condition, a, b), lanes = self.same(condition, a, b)
        return self.assign(a.type, lanes, f"select {condition.ir}, {a.ir}, {b.ir}")

    def cast(self, op: str, a: Value, element: str) -> Value:
        """``zext``, ``sext``, ``trunc``, ``sitofp`` … to another element type."""
        return self.assign(element, a.lanes, f"{op} {a.ir} to {type_text(element, a.lanes)}")

    def resize(self, a: Value, element: str, signed: bool = False) -> Value:
        """Extend or truncate an integer."""
        old, new = bits_of(a.type), bits_of(element)
        if old == new:
            return a
        return self.cast("trunc" if new < old else "sext" if signed else "zext", a, element)

    def bitcast(self, a: Value, element: str) -> Value:
        """The same bits as another type of the same width."""
        return a if a.type == element else self.cast("bitcast", a, element)

    def mask_vector(self, mask: Value) -> Value:
        """An i32 lane mask as 32 conditions."""
        return self.assign("i1", 32, f"bitcast {mask.ir} to <32 x i1>")

    def mask_word(self, conditions: Value) -> Value:
        """32 conditions (or one for all) as an i32 lane mask."""
        if conditions.lanes == 1:
            return self.cast("sext", conditions, "i32")
        return self.assign("i32", 1, f"bitcast {conditions.ir} to i32")

    def intrinsic(self, name: str, *args: Value, result: str | None = None, tail: str = "") -> Value:
        """An LLVM intrinsic overloaded on the type of its first argument, e.g. ``llvm.fma``."""
        values, lanes = self.same(*args)
        element = result or values[0].type
        full = f"{name}.{mangled(values[0].type, lanes)}"
        kinds = ", ".join(type_text(v.type, v.lanes) for v in values) + tail.replace(" false", "").replace(" true", "")
        self.declare(full, type_text(element, lanes), kinds)
        return self.assign(
            element, lanes, f"call {type_text(element, lanes)} @{full}({', '.join(v.ir for v in values)}{tail})"
        )

    def declare(self, name: str, result: str, parameters: str) -> None:
        """Declare a function of another module, or an intrinsic."""
        self.module.declarations.setdefault(name, f"declare {result} @{name}({parameters})")

    def call(self, name: str, result: str | None, *args: Value, lanes: int = 1) -> Value:
        """Call a function that is defined or declared elsewhere; result None is void."""
        kind = type_text(result, lanes) if result else "void"
        self.declare(name, kind, ", ".join(type_text(a.type, a.lanes) for a in args))
        text = f"call {kind} @{name}({', '.join(a.ir for a in args)})"
        if result:
            return self.assign(result, lanes, text)
        self.emit(text)
        return constant("i32", 0)

    def count_trailing_zeros(self, a: Value) -> Value:
        """Number of the lowest set bit; `a` must not be 0."""
        return self.intrinsic("llvm.cttz", a, tail=", i1 true")

    def count_leading_zeros(self, a: Value) -> Value:
        """Zeros above the highest set bit; the width for 0."""
        return self.intrinsic("llvm.ctlz", a, tail=", i1 false")

    def popcount(self, a: Value) -> Value:
        """Number of set bits."""
        return self.intrinsic("llvm.ctpop", a)

    def reduce(self, operation: str, vector: Value) -> Value:
        """All lanes combined by ``add``, ``and``, ``or``, ``xor``, ``umin``, ``umax``, ``smin`` or ``smax``."""
        name = f"llvm.vector.reduce.{operation}.{mangled(vector.type, vector.lanes)}"
        self.declare(name, vector.type, type_text(vector.type, vector.lanes))
        return self.assign(vector.type, 1, f"call {vector.type} @{name}({vector.ir})")

    # Memory

    def offset(self, pointer: Value, distance: Value | int) -> Value:
        """Pointer plus bytes."""
        if isinstance(distance, int):
            distance = constant("i64", distance)
        return self.assign("ptr", 1, f"getelementptr i8, {pointer.ir}, {distance.ir}")

    def load(self, element: str, pointer: Value, lanes: int = 1, align: int | None = None, note: str = "") -> Value:
        """Load; `align` in bytes (default 1 for vectors, natural for scalars)."""
        align = align or _alignment(element, lanes)
        return self.assign(element, lanes, f"load {type_text(element, lanes)}, {pointer.ir}, align {align}{note}")

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Store."""
        align = align or _alignment(value.type, value.lanes)
        self.emit(f"store {value.ir}, {pointer.ir}, align {align}")

    # Shorthands, so that arithmetic reads like arithmetic

    def add(self, a: Value, b: Value | int) -> Value:
        """Sum of integers; sums of constants, and with 0, are folded here, for address arithmetic."""
        if isinstance(b, int) and a.type != "ptr":
            if b == 0:
                return a
            if a.constant and a.lanes == 1:
                return constant(a.type, int(a.text) + b)
        return self.binary("add", a, constant(a.type, b) if isinstance(b, int) else b)

    def sub(self, a: Value, b: Value | int) -> Value:
        """Difference of integers."""
        return self.binary("sub", a, constant(a.type, b) if isinstance(b, int) else b)

    def mul(self, a: Value, b: Value | int) -> Value:
        """Product of integers."""
        return self.binary("mul", a, constant(a.type, b) if isinstance(b, int) else b)

    def and_(self, a: Value, b: Value | int) -> Value:
        """Bitwise and."""
        return self.binary("and", a, constant(a.type, b) if isinstance(b, int) else b)

    def or_(self, a: Value, b: Value | int) -> Value:
        """Bitwise or."""
        return self.binary("or", a, constant(a.type, b) if isinstance(b, int) else b)

    def xor(self, a: Value, b: Value | int) -> Value:
        """Bitwise exclusive or."""
        return self.binary("xor", a, constant(a.type, b) if isinstance(b, int) else b)

    def shl(self, a: Value, b: Value | int) -> Value:
        """Shift left; the amount must be below the width."""
        return self.binary("shl", a, constant(a.type, b) if isinstance(b, int) else b)

    def lshr(self, a: Value, b: Value | int) -> Value:
        """Logical shift right; the amount must be below the width."""
        return self.binary("lshr", a, constant(a.type, b) if isinstance(b, int) else b)

    def ashr(self, a: Value, b: Value | int) -> Value:
        """Arithmetic shift right; the amount must be below the width."""
        return self.binary("ashr", a, constant(a.type, b) if isinstance(b, int) else b)

    def is_(self, predicate: str, a: Value, b: int) -> Value:
        """Compare integers with a Python int."""
        return self.compare(predicate, a, constant(a.type, b))

    def not_(self, a: Value) -> Value:
        """Bitwise complement."""
        return self.xor(a, -1)


def _alignment(element: str, lanes: int) -> int:
    return max(1, bits_of(element) // 8)
