"""`cvt` as LLVM IR: between integers, floats and halves, with every rounding and saturation that PTX has."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import FLOAT_BITS, Builder, Value, bits_of, constant, int_of, mangled, type_text
from gpulab.emulator.lower.floats import flush, rounded, saturate
from gpulab.emulator.lower.fp8 import decoded, encoded
from gpulab.emulator.lower.halves import halves, narrowed, pack, saturate_half, to_odd, widened
from gpulab.emulator.lower.table import ELEMENTS, pure
from gpulab.ptx.opcodes import Form

_INTEGRAL = {"rni": "llvm.roundeven", "rzi": "llvm.trunc", "rmi": "llvm.floor", "rpi": "llvm.ceil"}
_HALVES = ("f16", "bf16")
_FP8 = ("e4m3", "e5m2")
_FLOATS = ("f16", "bf16", "f32", "f64", "tf32")


@pure("cvt")
def cvt(b: Builder, form: Form, a: Value, c: Value | None = None, rest: Value | None = None) -> Value:
    target, source = form.type or "", form.source_type or ""
    if form.mode == "pack":
        return _packed_integers(b, form, a, c, rest)
    if target[:-2] in _FP8:
        return _to_fp8(b, form, a, c)
    if source[:-2] in _FP8:
        return _from_fp8(b, form, a)
    if target == "tf32":
        return _to_tf32(b, form, a)
    if c is not None:
        high, low = (_pair_half(b, form, target[:-2], value) for value in (a, c))
        return pack(b, low, high)
    if source not in _FLOATS:
        return _from_integer(b, form, target, source, a)
    if target not in _FLOATS:
        return _float_to_integer(b, form, target, source, a)
    return _float_to_float(b, form, target, source, a)


def _is_signed(type_name: str) -> bool:
    return type_name[0] == "s"


# ---- from integers


def _from_integer(b: Builder, form: Form, target: str, source: str, a: Value) -> Value:
    signed = _is_signed(source)
    if target not in _FLOATS:
        return _integer_to_integer(b, form, target, source, a)
    op = "sitofp" if signed else "uitofp"
    if target in _HALVES:
        return _integer_to_half(b, form, target, b.resize(a, "i64", signed), signed)
    value = rounded(b, form.rounding, op, a, result=ELEMENTS[target])
    return saturate(b, value) if form.saturate else value


def _integer_to_half(b: Builder, form: Form, target: str, wide: Value, signed: bool) -> Value:
    # Rounded to odd on the way, so that the second rounding is the only one that counts.
    near = b.cast("sitofp" if signed else "uitofp", wide, "double")
    if target == "bf16":
        # Cut off towards zero, so that the sticky bit below makes the magnitude right for either sign.
        start = b.add(wide, b.and_(b.ashr(wide, 63), 2047)) if signed else wide
        cut = b.shl(b.ashr(start, 11) if signed else b.lshr(start, 11), 11)
        high = b.cast("sitofp" if signed else "uitofp", cut, "double")
        sticky = b.is_("ne", b.and_(wide, 2047), 0)
        large = b.compare("oge", b.intrinsic("llvm.fabs", near), constant("double", (1023 + 53) << 52))
        odd = b.bitcast(b.or_(b.bitcast(high, "i64"), b.resize(sticky, "i64")), "double")
        near = b.select(large, odd, near)
    return _narrow(b, form, target, to_odd(b, near))


def _integer_to_integer(b: Builder, form: Form, target: str, source: str, a: Value) -> Value:
    element = ELEMENTS[target]
    if not form.saturate:
        return b.resize(a, element, _is_signed(source))
    wide = b.resize(a, "i64", _is_signed(source))
    low, high = _range(target)
    if _is_signed(source):
        wide = b.intrinsic("llvm.smax", wide, constant("i64", low)) if low > -(2**63) else wide
        wide = b.intrinsic("llvm.smin", wide, constant("i64", high)) if high < 2**63 else wide
    else:
        wide = b.intrinsic("llvm.umin", wide, constant("i64", high))
    return b.resize(wide, element)


def _range(type_name: str) -> tuple[int, int]:
    width = bits_of(ELEMENTS[type_name])
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if _is_signed(type_name) else (0, (1 << width) - 1)


# ---- from floats


def _source(b: Builder, form: Form, source: str, a: Value) -> Value:
    """The source as f32 or f64, exactly."""
    if source in _HALVES:
        return widened(b, source, a)
    return flush(b, a) if form.ftz and source == "f32" else a


def _float_to_integer(b: Builder, form: Form, target: str, source: str, a: Value) -> Value:
    value = _source(b, form, source, a)
    whole = b.intrinsic(_INTEGRAL[form.rounding or "rni"], value) if form.rounding != "rzi" else value
    element, signed = ELEMENTS[target], _is_signed(target)
    name = "llvm.fptosi.sat" if signed else "llvm.fptoui.sat"
    result = to_integer(b, name, whole, element)
    if source == "f64" or bits_of(element) == 64:
        nan = constant(element, 1 << (bits_of(element) - 1))
        result = b.select(b.compare("uno", value, value), nan, result)
    return result


def to_integer(b: Builder, name: str, value: Value, element: str) -> Value:
    """A saturating conversion (``llvm.fptosi.sat``, ``llvm.fptoui.sat``)."""
    full = f"{name}.{mangled(element, value.lanes)}.{mangled(value.type, value.lanes)}"
    kind = type_text(element, value.lanes)
    b.declare(full, kind, type_text(value.type, value.lanes))
    return b.assign(element, value.lanes, f"call {kind} @{full}({value.ir})")


def _float_to_float(b: Builder, form: Form, target: str, source: str, a: Value) -> Value:
    value = _source(b, form, source, a)
    if form.rounding in _INTEGRAL:
        value = b.intrinsic(_INTEGRAL[form.rounding], value)
    if target in _HALVES:
        return _narrow(b, form, target, value)
    element = ELEMENTS[target]
    if bits_of(element) > _width(value):
        value = b.cast("fpext", value, element)
    elif bits_of(element) < _width(value):
        rounding = form.rounding if form.rounding not in _INTEGRAL else "rn"
        value = rounded(b, rounding, "fptrunc", value, result=element)
    if form.ftz and target == "f32":
        value = flush(b, value)
    return saturate(b, value) if form.saturate else value


def _width(value: Value) -> int:
    return FLOAT_BITS[value.type]


def _pair_half(b: Builder, form: Form, target: str, value: Value) -> Value:
    """One half of a pair: numbers below zero become 0 before the rounding."""
    bits = _round_half(b, form.rounding, target, _clipped(b, form, value))
    return _kept_finite(b, target, bits) if form.finite else bits


def _clipped(b: Builder, form: Form, value: Value) -> Value:
    """With ``.relu`` 0 in place of numbers below zero."""
    zero = constant("float", 0)
    return b.select(b.compare("olt", value, zero), zero, value) if form.relu else value


def _kept_finite(b: Builder, kind: str, bits: Value) -> Value:
    """The largest number in place of infinity."""
    infinity = 0x7C00 if kind == "f16" else 0x7F80
    return b.select(b.is_("eq", b.and_(bits, 0x7FFF), infinity), b.sub(bits, 1), bits)


def _narrow(b: Builder, form: Form, target: str, value: Value) -> Value:
    """An f32 or f64 to a half in the form's rounding, with saturation and relu."""
    rounding = None if form.rounding in _INTEGRAL else form.rounding
    bits = _round_half(b, rounding, target, value)
    if form.saturate:
        bits = saturate_half(b, target, bits)
    if form.finite:
        bits = _kept_finite(b, target, bits)
    if form.relu:
        bits = b.intrinsic("llvm.smax", bits, constant("i16", 0))
    return bits


def _round_half(b: Builder, rounding: str | None, target: str, value: Value) -> Value:
    if value.type == "double":
        value = to_odd(b, value)
    bits = narrowed(b, target, value)
    if rounding in ("rz", "rm", "rp"):
        bits = b.select(b.compare("uno", value, value), bits, _redirected(b, rounding, target, value, bits))
    return bits


def _redirected(b: Builder, rounding: str, target: str, value: Value, bits: Value) -> Value:
    """From the nearest half to the one in the wanted direction: at most one step of the magnitude."""
    back = widened(b, target, bits)
    negative = b.is_("slt", b.bitcast(value, int_of(value.type)), 0)
    inward = b.compare("ogt", b.intrinsic("llvm.fabs", back), b.intrinsic("llvm.fabs", value))
    outward = b.compare("olt", b.intrinsic("llvm.fabs", back), b.intrinsic("llvm.fabs", value))
    lowered, raised = b.sub(bits, 1), b.add(bits, 1)
    toward_zero = b.select(inward, lowered, bits)
    if rounding == "rz":
        return toward_zero
    away = b.select(outward, raised, bits)
    return b.select(negative, toward_zero, away) if rounding == "rp" else b.select(negative, away, toward_zero)


def _to_tf32(b: Builder, form: Form, a: Value) -> Value:
    """Round the magnitude to ten fraction bits: cut off, ties to even, or ties away from zero."""
    bits = b.bitcast(_clipped(b, form, a), "i32")
    half = constant("i32", {"rz": 0, "rna": 0x1000}.get(form.rounding or "", 0xFFF))
    if form.rounding == "rn":
        half = b.add(half, b.and_(b.lshr(bits, 13), 1))
    finite = b.is_("ult", b.and_(bits, 0x7FFFFFFF), 0x7F800000)
    result = b.select(finite, b.and_(b.add(bits, half), 0xFFFFE000), bits)
    if form.finite:
        infinite = b.is_("eq", b.and_(result, 0x7FFFFFFF), 0x7F800000)
        result = b.select(infinite, b.sub(result, 0x2000), result)
    return b.select(b.compare("uno", a, a), constant("i32", 0x7FFFFFFF), result)


# ---- pairs of 8-bit floats, packed integers


def _to_fp8(b: Builder, form: Form, a: Value, c: Value | None) -> Value:
    """The first source, or the upper half of the only one, becomes the high byte."""
    kind = (form.type or "")[:-2]
    low, high = (c, a) if c is not None else (widened(b, "f16", half) for half in halves(b, a))
    codes = [encoded(b, kind, _clipped(b, form, value)) for value in (low, high)]
    return b.or_(codes[0], b.shl(codes[1], 8))


def _from_fp8(b: Builder, form: Form, a: Value) -> Value:
    kind = (form.source_type or "")[:-2]
    parts = [decoded(b, kind, code) for code in (b.and_(a, 0xFF), b.lshr(a, 8))]
    if form.relu:
        parts = [b.select(b.is_("ugt", part, 0x8000), constant("i16", 0), part) for part in parts]
    return pack(b, *parts)


def _packed_integers(b: Builder, form: Form, a: Value, c: Value, rest: Value | None) -> Value:
    """``cvt.pack``: both sources saturated, the second one lowest; above them the low bits of `rest`."""
    bits = int((form.type or "")[1:])
    low = -(1 << (bits - 1)) if _is_signed(form.type or "") else 0
    parts = []
    for value in (a, c):
        inside = b.intrinsic("llvm.smax", value, constant("i32", low))
        inside = b.intrinsic("llvm.smin", inside, constant("i32", low + (1 << bits) - 1))
        parts.append(b.and_(inside, (1 << bits) - 1))
    packed = b.or_(parts[1], b.shl(parts[0], bits))
    return packed if rest is None else b.or_(packed, b.shl(rest, 2 * bits))
