"""f32 and f64 arithmetic as LLVM IR: rounding, flushing of denormals, saturation, minima with PTX's zeros and NaNs."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import FLOAT_BITS, Builder, Value, bits_of, constant, int_of, mangled, type_text
from gpulab.emulator.lower.table import pure
from gpulab.ptx.opcodes import Form

_SIGN = {"float": 0x80000000, "double": 1 << 63}
_EXPONENT = {"float": 0x7F800000, "double": 0x7FF << 52}
_ONE = {"float": 0x3F800000, "double": 0x3FF << 52, "half": 0x3C00}
CANONICAL_NAN = {"float": 0x7FFFFFFF, "double": 0x7FFFFFFFFFFFFFFF}
# Arguments of llvm.set.rounding (C's FLT_ROUNDS).
_MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}


def is_float(form: Form) -> bool:
    """Whether the operation is on f32 or f64."""
    return form.type in ("f32", "f64") and form.source_type is None


def flush(b: Builder, a: Value) -> Value:
    """Denormals become zeros of the same sign."""
    bits = b.bitcast(a, int_of(a.type))
    tiny = b.is_("eq", b.and_(bits, _EXPONENT[a.type]), 0)
    return b.select(tiny, b.bitcast(b.and_(bits, _SIGN[a.type]), a.type), a)


def saturate(b: Builder, a: Value) -> Value:
    """Clamp to [0, 1]; NaN becomes +0."""
    zero, one = constant(a.type, 0), constant(a.type, _ONE[a.type])
    above = b.select(b.compare("ogt", a, zero), a, zero)
    return b.select(b.compare("olt", above, one), above, one)


def prepared(b: Builder, form: Form, *values: Value) -> list[Value]:
    """Sources of an f32 operation with `.ftz`, flushed."""
    return [flush(b, v) if form.ftz and v.type == "float" else v for v in values]


def finished(b: Builder, form: Form, value: Value) -> Value:
    """Result of an operation, flushed and saturated as the form asks."""
    if form.ftz and value.type == "float":
        value = flush(b, value)
    return saturate(b, value) if form.saturate else value


def rounded(b: Builder, rounding: str | None, op: str, *values: Value, result: str | None = None) -> Value:
    """A float operation in one of the four rounding modes.

    Parameters
    ----------
    op : str
        ``fadd``, ``fsub``, ``fmul``, ``fdiv``, ``fma``, ``sqrt``, ``fptrunc``, ``sitofp``, ``uitofp``.
    result : str
        Element type of a conversion's result.
    """
    values, lanes = b.same(*values)
    element = result or values[0].type
    if rounding in (None, "rn"):
        return _nearest(b, op, list(values), element)
    name = _directed(b, op, rounding, list(values), element, lanes)
    return b.call(name, element, *values, lanes=lanes)


def _nearest(b: Builder, op: str, values: list[Value], element: str) -> Value:
    if op in ("fma", "sqrt"):
        return b.intrinsic(f"llvm.{op}", *values)
    return b.binary(op, *values) if len(values) == 2 else b.cast(op, values[0], element)


def _directed(b: Builder, op: str, rounding: str, values: list[Value], element: str, lanes: int) -> str:
    """A function of the module that switches the CPU's rounding mode around one operation.

    It is never inlined: nothing else is computed while the mode is switched.
    """
    source = mangled(values[0].type, lanes)
    target = mangled(element, lanes)
    name = f"{op}.{rounding}.{target}.{source}"
    if name in b.module.functions:
        return name
    parameters = tuple((f"a{i}", type_text(v.type, lanes)) for i, v in enumerate(values))
    f = Builder(b.module, name, type_text(element, lanes), parameters, "nounwind noinline strictfp", "internal")
    suffix = f"{target}.{source}" if len(values) == 1 and op != "sqrt" else target
    full = f"llvm.experimental.constrained.{op}.{suffix}"
    kinds = ", ".join(kind for _, kind in parameters)
    f.declare(full, type_text(element, lanes), f"{kinds}, metadata, metadata")
    f.declare("llvm.set.rounding", "void", "i32")
    f.emit(f"call void @llvm.set.rounding(i32 {_MODES[rounding]}) strictfp")
    listed = ", ".join(f"{kind} %{parameter}" for parameter, kind in parameters)
    answer = f.assign(
        element, lanes,
        f'call {type_text(element, lanes)} @{full}({listed}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp',
    )  # fmt: skip
    f.emit("call void @llvm.set.rounding(i32 1) strictfp")
    f.ret(answer)
    f.finish()
    return name


def _arithmetic(b: Builder, form: Form, op: str, *values: Value) -> Value:
    return finished(b, form, rounded(b, form.rounding, op, *prepared(b, form, *values)))


@pure("add", is_float)
def add(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _arithmetic(b, form, "fadd", a, c)


@pure("sub", is_float)
def sub(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _arithmetic(b, form, "fsub", a, c)


@pure("mul", is_float)
def mul(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _arithmetic(b, form, "fmul", a, c)


@pure("fma", is_float)
def fma(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    return _arithmetic(b, form, "fma", a, c, d)


@pure("mad", is_float)
def mad(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    return _arithmetic(b, form, "fma", a, c, d)


@pure("div", lambda form: is_float(form) and form.mode is None)
def div(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _arithmetic(b, form, "fdiv", a, c)


@pure("rcp", lambda form: form.mode is None)
def rcp(b: Builder, form: Form, a: Value) -> Value:
    return _arithmetic(b, form, "fdiv", constant(a.type, _ONE[a.type]), a)


@pure("sqrt", lambda form: form.mode is None)
def sqrt(b: Builder, form: Form, a: Value) -> Value:
    (a,) = prepared(b, form, a)
    # Said explicitly, because LLVM folds a later test of the root for NaN wrongly.
    below = b.compare("olt", a, constant(a.type, 0))
    root = rounded(b, form.rounding, "sqrt", b.select(below, constant(a.type, 0), a))
    return finished(b, form, b.select(below, constant(a.type, CANONICAL_NAN[a.type]), root))


@pure("abs", is_float)
def abs_(b: Builder, form: Form, a: Value) -> Value:
    (a,) = prepared(b, form, a)
    return b.bitcast(b.and_(b.bitcast(a, int_of(a.type)), _SIGN[a.type] - 1), a.type)


@pure("neg", is_float)
def neg(b: Builder, form: Form, a: Value) -> Value:
    (a,) = prepared(b, form, a)
    return b.bitcast(b.xor(b.bitcast(a, int_of(a.type)), _SIGN[a.type]), a.type)


@pure("copysign")
def copysign(b: Builder, form: Form, a: Value, c: Value) -> Value:
    element, sign = int_of(a.type), _SIGN[a.type]
    magnitude = b.and_(b.bitcast(c, element), sign - 1)
    return b.bitcast(b.or_(magnitude, b.and_(b.bitcast(a, element), sign)), a.type)


def least(b: Builder, a: Value, c: Value, want_max: bool, propagate_nan: bool, nan: Value) -> Value:
    """Minimum or maximum: -0 is below +0; a NaN loses, or wins with `.NaN`; two NaNs give the canonical one."""
    element = int_of(a.type)
    join = "and" if want_max else "or"
    zeros = b.bitcast(b.binary(join, b.bitcast(a, element), b.bitcast(c, element)), a.type)
    chosen = b.select(b.compare("ogt" if want_max else "olt", a, c), a, c)
    chosen = b.select(b.compare("oeq", a, c), zeros, chosen)
    a_nan, c_nan = b.compare("uno", a, a), b.compare("uno", c, c)
    if propagate_nan:
        return b.select(b.or_(a_nan, c_nan), nan, chosen)
    chosen = b.select(a_nan, c, b.select(c_nan, a, chosen))
    return b.select(b.and_(a_nan, c_nan), nan, chosen)


def signed_least(b: Builder, form: Form, *sources: Value) -> Value:
    """The extremum of two or three; with ``.abs`` of magnitudes, with ``.xorsign`` under the product of the signs."""
    kind = sources[0].type
    nan = constant(kind, CANONICAL_NAN[kind])
    values = [b.intrinsic("llvm.fabs", source) for source in sources] if form.absolute else list(sources)
    result = values[0]
    for value in values[1:]:
        result = least(b, result, value, form.opcode == "max", form.nan, nan)
    if not form.xor_sign:
        return result
    first, second = (b.bitcast(source, int_of(kind)) for source in sources)
    sign = b.and_(b.xor(first, second), _SIGN[kind])
    turned = b.bitcast(b.xor(b.bitcast(result, int_of(kind)), sign), kind)
    return b.select(b.compare("uno", result, result), nan, turned)


@pure("min", is_float)
@pure("max", is_float)
def min_max(b: Builder, form: Form, *sources: Value) -> Value:
    return signed_least(b, form, *prepared(b, form, *sources))


@pure("testp")
def testp(b: Builder, form: Form, a: Value) -> Value:
    bits = b.bitcast(a, int_of(a.type))
    exponent = _EXPONENT[a.type]
    magnitude = b.and_(bits, _SIGN[a.type] - 1)
    if form.operation in ("normal", "subnormal"):
        field = b.and_(bits, exponent)
        tiny = b.is_("eq", field, 0)
        if form.operation == "subnormal":
            return b.and_(tiny, b.is_("ne", magnitude, 0))
        return b.and_(b.not_(tiny), b.is_("ne", field, exponent))
    predicate = {"finite": "ult", "infinite": "eq", "number": "ule", "notanumber": "ugt"}[form.operation or ""]
    return b.is_(predicate, magnitude, exponent)


def width(a: Value) -> int:
    """Bits of a float or integer value."""
    return FLOAT_BITS.get(a.type) or bits_of(a.type)
