"""Values and constants of LLVM IR text."""

from __future__ import annotations

from dataclasses import dataclass

FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
_MANGLED = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value or constant: element type, number of lanes, operand text (of a scalar constant: the number)."""

    type: str
    lanes: int
    text: str
    constant: bool = False

    @property
    def ir(self) -> str:
        """Operand with its type."""
        return f"{type_text(self.type, self.lanes)} {self.text}"


def type_text(element: str, lanes: int) -> str:
    """LLVM spelling of a type."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def bits_of(element: str) -> int:
    """Width of an element type in bits."""
    return FLOAT_BITS.get(element) or (64 if element == "ptr" else int(element[1:]))


def int_of(element: str) -> str:
    """The integer type of the same width."""
    return f"i{bits_of(element)}"


def mangled(element: str, lanes: int) -> str:
    """Type suffix of an overloaded intrinsic."""
    name = _MANGLED.get(element, element)
    return name if lanes == 1 else f"v{lanes}{name}"


def constant(element: str, value: int, lanes: int = 1) -> Value:
    """An integer constant (any Python int, taken modulo the width), or a float constant from its bits."""
    bits = bits_of(element)
    value &= (1 << bits) - 1
    if element == "i1":
        text = "true" if value else "false"
    elif element in FLOAT_BITS:
        text = _float_text(element, value)
    elif element == "ptr":
        text = f"inttoptr (i64 {value} to ptr)"
    else:
        text = str(value - (1 << bits) if value >> (bits - 1) else value)
    scalar = Value(element, 1, text, True)
    return scalar if lanes == 1 else splat_constant(scalar, lanes)


def splat_constant(scalar: Value, lanes: int) -> Value:
    """A constant in every lane."""
    return Value(scalar.type, lanes, f"splat ({scalar.ir})", True)


def lane_numbers(element: str = "i32", lanes: int = 32) -> Value:
    """The constant vector 0, 1, 2, …"""
    return constants(element, list(range(lanes)))


def constants(element: str, values: list[int]) -> Value:
    """A constant vector of integers."""
    return Value(element, len(values), "<" + ", ".join(constant(element, v).ir for v in values) + ">", True)


def _float_text(element: str, bits: int) -> str:
    if element == "half":
        return f"0xH{bits:04X}"
    if element == "double":
        return f"0x{bits:016X}"
    # LLVM writes a float constant as the double of the same value; a NaN keeps sign and payload in the top bits.
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return f"0x{sign << 63 | 0x7FF << 52 | fraction << 29:016X}"
    if exponent == 0 and fraction:
        shift = 24 - fraction.bit_length()
        return f"0x{sign << 63 | (1023 - 126 - shift) << 52 | ((fraction << shift) & 0x7FFFFF) << 29:016X}"
    wide = exponent + 1023 - 127 if exponent else 0
    return f"0x{sign << 63 | wide << 52 | fraction << 29:016X}"
