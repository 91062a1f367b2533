"""e4m3 and e5m2, the 8-bit floats, in pairs, as LLVM IR."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import Builder, Value, constant
from gpulab.emulator.lower.halves import narrowed, widened

_FRACTION_BITS = {"e4m3": 3, "e5m2": 2}
_BIAS = {"e4m3": 7, "e5m2": 15}
_LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}
_NAN = 0x7F


def encoded(b: Builder, kind: str, a: Value) -> Value:
    """An f32 rounded to nearest and kept finite, as an i16 code."""
    fraction, bias = _FRACTION_BITS[kind], _BIAS[kind]
    bits = b.bitcast(a, "i32")
    magnitude = b.and_(bits, 0x7FFFFFFF)
    # Normal: cut off the surplus fraction with ties to even, and move the exponent's bias.
    surplus = 23 - fraction
    even = b.and_(b.lshr(magnitude, surplus), 1)
    rounded = b.lshr(b.add(b.add(magnitude, even), (1 << (surplus - 1)) - 1), surplus)
    normal = b.sub(rounded, (127 - bias) << fraction)
    # Denormal: added to a number whose last bit is that of the denormals, the FPU rounds and counts them.
    anchor = (127 + 23 + 1 - bias - fraction) << 23
    shifted = b.binary("fadd", b.bitcast(magnitude, "float"), constant("float", anchor))
    denormal = b.sub(b.bitcast(shifted, "i32"), anchor)
    code = b.select(b.is_("ult", magnitude, (127 + 1 - bias) << 23), denormal, normal)
    # Magnitudes far too large wrapped around above; the largest number takes their place, too.
    code = b.select(b.is_("ugt", magnitude, 0x47800000), constant("i32", _LARGEST[kind]), code)
    code = b.intrinsic("llvm.umin", code, constant("i32", _LARGEST[kind]))
    code = b.or_(code, b.and_(b.lshr(bits, 24), 0x80))
    return b.resize(b.select(b.compare("uno", a, a), constant("i32", _NAN), code), "i16")


def decoded(b: Builder, kind: str, code: Value) -> Value:
    """An i16 code as f16 bits, exactly; NaN becomes the canonical one."""
    sign, magnitude = b.shl(b.and_(code, 0x80), 8), b.and_(code, 0x7F)
    if kind == "e5m2":
        bits = b.shl(magnitude, 8)
        is_nan = b.is_("ugt", magnitude, 0x7C)
    else:
        # The same bits read as f16 are too small by the difference of the biases.
        small = widened(b, "f16", b.shl(magnitude, 7))
        bits = narrowed(b, "f16", b.binary("fmul", small, constant("float", (127 + 8) << 23)))
        is_nan = b.is_("eq", magnitude, _NAN)
    return b.select(is_nan, constant("i16", 0x7FFF), b.or_(bits, sign))
