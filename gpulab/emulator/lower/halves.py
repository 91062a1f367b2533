"""f16 and bf16 arithmetic, single and in pairs, as LLVM IR.

Halves are kept as their bits. Sums and products are computed in f32, whose 24 bits suffice that rounding once more gives
the correctly rounded half; fused operations in f64 with *rounding to odd*, which keeps a sticky bit so that the last
rounding is right too.
"""

from __future__ import annotations

from gpulab.emulator.llvm.ir import Builder, Value, constant
from gpulab.emulator.lower.floats import signed_least
from gpulab.emulator.lower.table import pure
from gpulab.ptx.opcodes import Form

_NAN = 0x7FFF


def is_half(form: Form) -> bool:
    """Whether the operation is on halves."""
    return (form.type or "").removesuffix("x2") in ("f16", "bf16")


def halves(b: Builder, pair: Value) -> tuple[Value, Value]:
    """Low and high half of a pair."""
    return b.resize(pair, "i16"), b.resize(b.lshr(pair, 16), "i16")


def pack(b: Builder, low: Value, high: Value) -> Value:
    """A pair from its halves."""
    return b.or_(b.resize(low, "i32"), b.shl(b.resize(high, "i32"), 16))


def widened(b: Builder, kind: str, a: Value, ftz: bool = False) -> Value:
    """A half as f32, exactly."""
    if kind == "bf16":
        return b.bitcast(b.shl(b.resize(a, "i32"), 16), "float")
    if ftz:
        a = flush_half(b, a)
    return b.cast("fpext", b.bitcast(a, "half"), "float")


def flush_half(b: Builder, a: Value) -> Value:
    """Denormal f16 bits become zeros of the same sign."""
    return b.select(b.is_("eq", b.and_(a, 0x7C00), 0), b.and_(a, 0x8000), a)


def narrowed(b: Builder, kind: str, a: Value) -> Value:
    """An f32 rounded to the nearest half, as bits."""
    if kind == "f16":
        bits = b.bitcast(b.cast("fptrunc", a, "half"), "i16")
    else:
        word = b.bitcast(a, "i32")
        bias = b.add(b.and_(b.lshr(word, 16), 1), 0x7FFF)
        bits = b.resize(b.lshr(b.add(word, bias), 16), "i16")
    return b.select(b.compare("uno", a, a), constant("i16", _NAN), bits)


def to_odd(b: Builder, a: Value) -> Value:
    """An f64 as f32, rounded to odd: the last bit is set if anything was cut off."""
    near = b.cast("fptrunc", a, "float")
    back = b.cast("fpext", near, "double")
    bits = b.bitcast(near, "i32")
    too_large = b.compare("ogt", b.intrinsic("llvm.fabs", back), b.intrinsic("llvm.fabs", a))
    odd = b.or_(b.select(too_large, b.sub(bits, 1), bits), 1)
    return b.bitcast(b.select(b.compare("one", back, a), odd, bits), "float")


def fused(b: Builder, a: Value, c: Value, d: Value) -> Value:
    """``a * c + d`` of widened halves (f32), rounded to odd as f32."""
    x, y, z = (b.cast("fpext", v, "double") for v in (a, c, d))
    exact = b.binary("fmul", x, y)
    total = b.binary("fadd", exact, z)
    # The rounding error of the sum (Knuth's two-sum); its sign tells on which side the exact sum lies.
    virtual = b.binary("fsub", total, exact)
    lost = b.binary("fadd", b.binary("fsub", exact, b.binary("fsub", total, virtual)), b.binary("fsub", z, virtual))
    bits = b.bitcast(total, "i64")
    zero = constant("double", 0)
    outward = b.compare("eq", b.compare("ogt", lost, zero), b.compare("ogt", total, zero))
    odd = b.or_(b.select(outward, bits, b.sub(bits, 1)), 1)
    return to_odd(b, b.select(b.compare("one", lost, zero), b.bitcast(odd, "double"), total))


def _each_half(b: Builder, form: Form, function, *values: Value) -> Value:  # noqa: ANN001
    """Apply a function of single halves (kind, sources) to singles or to both halves of pairs."""
    kind = (form.type or "").removesuffix("x2")
    if not (form.type or "").endswith("x2"):
        return function(kind, *values)
    split = [halves(b, value) for value in values]
    return pack(b, function(kind, *(low for low, _ in split)), function(kind, *(high for _, high in split)))


def saturate_half(b: Builder, kind: str, a: Value) -> Value:
    """Clamp to [0, 1]; NaN and -0 become +0."""
    one, infinity = (0x3C00, 0x7C00) if kind == "f16" else (0x3F80, 0x7F80)
    positive = b.and_(b.is_("sgt", a, 0), b.is_("ule", a, infinity))
    return b.select(positive, b.intrinsic("llvm.umin", a, constant("i16", one)), constant("i16", 0))


def _finished(b: Builder, form: Form, kind: str, a: Value) -> Value:
    if form.ftz and kind == "f16":
        a = flush_half(b, a)
    if form.saturate:
        a = saturate_half(b, kind, a)
    if form.relu:
        # Numbers below zero become 0; -0 stays, and NaN is the canonical one, which has no sign.
        a = b.select(b.is_("ugt", a, 0x8000), constant("i16", 0), a)
    return a


def _binary(b: Builder, form: Form, op: str, a: Value, c: Value) -> Value:
    def one(kind: str, x: Value, y: Value) -> Value:
        result = b.binary(op, widened(b, kind, x, form.ftz), widened(b, kind, y, form.ftz))
        return _finished(b, form, kind, narrowed(b, kind, result))

    return _each_half(b, form, one, a, c)


@pure("add", is_half)
def add(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _binary(b, form, "fadd", a, c)


@pure("sub", is_half)
def sub(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _binary(b, form, "fsub", a, c)


@pure("mul", is_half)
def mul(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _binary(b, form, "fmul", a, c)


@pure("fma", is_half)
def fma(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    def one(kind: str, x: Value, y: Value, z: Value) -> Value:
        wide = [widened(b, kind, v, form.ftz) for v in (x, y, z)]
        return _finished(b, form, kind, narrowed(b, kind, fused(b, *wide)))

    return _each_half(b, form, one, a, c, d)


def _sign_bits(b: Builder, form: Form, op: str, mask: int, a: Value) -> Value:
    def one(kind: str, x: Value) -> Value:
        x = flush_half(b, x) if form.ftz and kind == "f16" else x
        return b.binary(op, x, constant("i16", mask))

    return _each_half(b, form, one, a)


@pure("neg", is_half)
def neg(b: Builder, form: Form, a: Value) -> Value:
    return _sign_bits(b, form, "xor", 0x8000, a)


@pure("abs", is_half)
def abs_(b: Builder, form: Form, a: Value) -> Value:
    return _sign_bits(b, form, "and", 0x7FFF, a)


@pure("min", is_half)
@pure("max", is_half)
def min_max(b: Builder, form: Form, a: Value, c: Value) -> Value:
    def one(kind: str, x: Value, y: Value) -> Value:
        chosen = signed_least(b, form, widened(b, kind, x, form.ftz), widened(b, kind, y, form.ftz))
        return _finished(b, form, kind, narrowed(b, kind, chosen))

    return _each_half(b, form, one, a, c)
