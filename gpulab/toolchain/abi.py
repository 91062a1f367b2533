"""From a user's arguments to the parameter buffer of a kernel, with checks that name the parameter.

A kernel's parameters lie one after the other in a buffer, each aligned to its own size (PTX ISA, "Kernel Function
Parameters"). Numba hands an array over as 5 + 2 * ndim values of 8 bytes: two unused pointers, number of items, item
size, address, shape, strides. C++ takes an address.
"""

from __future__ import annotations

import numbers
import os
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpulab.errors import ArgumentError
from gpulab.toolchain.argument_types import ArrayFacts, array_facts, numba_type, require_plain_bytes, require_unmasked
from gpulab.toolchain.records import ParameterType, dtype_name

#: Gives an array a place in the GPU's address space: ``bind(array, facts, name) -> address of its first item``.
Bind = Callable[[Any, ArrayFacts, str], int]

Piece = tuple[bytes, int]

# CUDA's built-in vectors: item type by name (vector_types.h); long has the size of a pointer on Linux only.
_VECTOR_ITEMS = {
    "char": "i1", "short": "i2", "int": "i4", "long": "i4" if os.name == "nt" else "i8", "longlong": "i8",
    "float": "f4", "double": "f8",
}  # fmt: skip


def pack(kernel: str, parameters: Sequence[ParameterType], arguments: Sequence[Any], bind: Bind) -> bytes:
    """Check `arguments` against `parameters`, bind the arrays, and lay the parameter buffer out.

    Raises
    ------
    ArgumentError
        If the number of arguments or an argument does not fit; the message names the parameter, what it takes and
        what came.
    """
    check_count(kernel, parameters, arguments)
    buffer = bytearray()
    for number, (parameter, value) in enumerate(zip(parameters, arguments, strict=True), 1):
        for data, align in _pieces(parameter, value, _Place(kernel, number, parameter), bind):
            buffer += bytes(-len(buffer) % align) + data
    return bytes(buffer)


def check_count(kernel: str, parameters: Sequence[ParameterType], arguments: Sequence[Any]) -> None:
    """Raise an `ArgumentError` if there are not as many arguments as parameters."""
    if len(parameters) == len(arguments):
        return
    names = ", ".join(f"{parameter} {parameter.name}".strip() for parameter in parameters) or "nothing"
    came = ", ".join(described(value) for value in arguments) or "none"
    raise ArgumentError(
        f"{kernel} takes {len(parameters)} argument{'s' * (len(parameters) != 1)} ({names}), "
        f"but {len(arguments)} came ({came})."
    )


def described(value: Any) -> str:
    """How messages call an argument: ``float32 array (100,)``, ``int 5``."""
    facts = array_facts(value)
    if facts is not None:
        return f"{dtype_name(facts.dtype)} array {facts.shape}"
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


class _Place:
    """Where an argument belongs, for messages."""

    def __init__(self, kernel: str, number: int, parameter: ParameterType) -> None:
        self.name = parameter.name or f"number {number}"
        self._lead = f"{kernel}: parameter {number}" + (f" '{parameter.name}'" if parameter.name else "")

    def error(self, parameter: ParameterType, value: Any, remedy: str) -> ArgumentError:
        return ArgumentError(f"{self._lead} is {parameter}, but {described(value)} came. {remedy}")


def _pieces(parameter: ParameterType, value: Any, place: _Place, bind: Bind) -> list[Piece]:
    if parameter.kind == "array":
        return _numba_array(parameter, value, place, bind)
    if parameter.kind == "tuple":
        if not isinstance(value, tuple) or len(value) != len(parameter.elements):
            raise place.error(parameter, value, f"Pass a tuple of {len(parameter.elements)}.")
        pairs = zip(parameter.elements, value, strict=True)
        return [piece for element, item in pairs for piece in _pieces(element, item, place, bind)]
    if parameter.kind == "record":
        return _numba_record(parameter, value, place, bind)
    if parameter.kind == "pointer":
        return [(struct.pack("<Q", _pointer(parameter, value, place, bind)), 8)]
    if parameter.kind == "struct":
        return [(_struct(parameter, value, place), parameter.align)]
    return _scalar(parameter, value, place, bind)


def _numba_array(parameter: ParameterType, value: Any, place: _Place, bind: Bind) -> list[Piece]:
    facts = array_facts(value)
    if facts is None:
        raise place.error(parameter, value, "Pass an array.")
    _check_numba_array(parameter, value, facts, place)
    address = bind(value, facts, place.name)
    itemsize = facts.dtype.itemsize
    words = (0, 0, facts.size, itemsize, address, *facts.shape, *facts.strides)
    return [(struct.pack("<q" if word < 0 else "<Q", word), 8) for word in words]


def _check_numba_array(parameter: ParameterType, value: Any, facts: ArrayFacts, place: _Place) -> None:
    """Only a kernel with a declared signature can meet an array of another type here."""
    if facts.dtype != parameter.dtype:
        name = dtype_name(parameter.dtype)
        raise place.error(
            parameter, value, f"Convert it, e.g. {place.name}.astype(np.{name}), or change the signature."
        )
    if len(facts.shape) != parameter.ndim:
        raise place.error(parameter, value, f"It must have {parameter.ndim} dimension{'s' * (parameter.ndim != 1)}.")
    contiguous = parameter.layout == "A" or facts.layout == parameter.layout or _both_orders(facts)
    if not contiguous:
        maker = "np.ascontiguousarray" if parameter.layout == "C" else "np.asfortranarray"
        raise place.error(parameter, value, f"It is not contiguous in that order: pass {maker}({place.name}).")
    if facts.readonly and not parameter.readonly:
        raise place.error(parameter, value, f"It is read-only: pass a writable copy, {place.name}.copy().")


def _both_orders(facts: ArrayFacts) -> bool:
    return facts.layout == "C" and sum(length != 1 for length in facts.shape) <= 1


def _numba_record(parameter: ParameterType, value: Any, place: _Place, bind: Bind) -> list[Piece]:
    if not isinstance(value, np.void) or value.dtype != parameter.dtype:
        raise place.error(parameter, value, "Pass one item of a structured array of that dtype.")
    holder = np.array(value, ndmin=1)
    facts = array_facts(holder)
    assert facts is not None
    return [(struct.pack("<Q", bind(holder, facts, place.name)), 8)]


def _pointer(parameter: ParameterType, value: Any, place: _Place, bind: Bind) -> int:
    if value is None:
        return 0
    facts = array_facts(value)
    if facts is None:
        raise place.error(parameter, value, "Pass an array.")
    require_unmasked(value, place.name)
    require_plain_bytes(facts.dtype, place.name)
    if parameter.dtype is not None and facts.dtype.itemsize != parameter.dtype.itemsize:
        wanted = "np.bool_" if parameter.dtype.kind == "b" else f"np.{parameter.dtype}"
        raise place.error(
            parameter, value,
            f"The kernel steps through it in items of {parameter.dtype.itemsize} bytes, but its items have "
            f"{facts.dtype.itemsize}. Convert it: {place.name}.astype({wanted}).",
        )  # fmt: skip
    if facts.layout == "A":
        raise place.error(
            parameter,
            value,
            f"It is not contiguous, and a pointer has no strides: pass np.ascontiguousarray({place.name}).",
        )
    return bind(value, facts, place.name)


def _struct(parameter: ParameterType, value: Any, place: _Place) -> bytes:
    data = _bytes_of(parameter, value)
    if data is None or len(data) != parameter.size:
        raise place.error(
            parameter,
            value,
            f"Pass {parameter.size} bytes: an item of a structured array with the same fields, or bytes.",
        )
    return data


def _bytes_of(parameter: ParameterType, value: Any) -> bytes | None:
    """The bytes of a value that is passed as a struct, None if it has none."""
    vector = re.fullmatch(r"(u?)(char|short|int|long|longlong|float|double)([1-4])", parameter.spelling)
    if isinstance(value, (tuple, list)) and vector and len(value) == int(vector[3]):
        return np.array(
            value, _VECTOR_ITEMS[vector[2]].replace("i", "u") if vector[1] else _VECTOR_ITEMS[vector[2]]
        ).tobytes()
    if isinstance(value, numbers.Real) and parameter.size == 2 and parameter.spelling in ("__half", "half"):
        return np.float16(value).tobytes()
    if type(value) is complex and parameter.size in (8, 16):
        return np.array(value, np.complex64 if parameter.size == 8 else np.complex128).tobytes()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tobytes()
    return bytes(value) if isinstance(value, bytes) or hasattr(value, "_fields_") else None


def _scalar(parameter: ParameterType, value: Any, place: _Place, bind: Bind) -> list[Piece]:
    dtype = parameter.dtype
    assert dtype is not None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    facts = array_facts(value)
    if facts is not None:
        if not parameter.spelling and dtype.itemsize == 8 and dtype.kind == "u":
            # PTX as it is does not tell an address from a number.
            return [(struct.pack("<Q", _pointer(ParameterType("pointer", parameter.name), value, place, bind)), 8)]
        raise place.error(parameter, value, f"Pass one number, e.g. {place.name}[0].")
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        number = _as_number(parameter, value, place, numbers.Complex)
        return [(part.type(side).tobytes(), part.itemsize) for side in (number.real, number.imag)]
    if dtype.kind in "mM":
        return [(np.asarray(value, dtype).tobytes(), 8)]
    data = _real(parameter, dtype, value, place)
    return [(data, max(len(data), 1))]


def _real(parameter: ParameterType, dtype: np.dtype, value: Any, place: _Place) -> bytes:
    number = _as_number(parameter, value, place, numbers.Real)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # a float too large for the type becomes inf, as in C++
            return dtype.type(number).tobytes()
    if number != number or number in (float("inf"), float("-inf")) or int(number) != number:
        raise place.error(parameter, value, "It must be a whole number: use // or int(…).")
    if dtype.kind == "b":
        return struct.pack("<?", bool(number))
    bits = dtype.itemsize * 8
    # Both readings of the bits are taken: -1 for an unsigned parameter is a common way to say "all ones".
    if not -(1 << (bits - 1)) <= int(number) < 1 << bits:
        raise place.error(parameter, value, f"It does not fit into {bits} bits.")
    return (int(number) % (1 << bits)).to_bytes(dtype.itemsize, "little")


def _as_number(parameter: ParameterType, value: Any, place: _Place, kind: type) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.generic) and isinstance(value.item(), kind):
        return value if isinstance(value, (np.floating, np.complexfloating)) else value.item()
    if isinstance(value, kind):
        return value
    raise place.error(parameter, value, "Pass a number.")


def argument_types(kernel: str, names: Sequence[str], arguments: Sequence[Any]) -> tuple[ParameterType, ...]:
    """Types of the arguments of a Numba kernel with these parameter names.

    Raises
    ------
    ArgumentError
        If the count is wrong or a kernel cannot take one of them.
    """
    check_count(kernel, [ParameterType("scalar", spelling=name) for name in names], arguments)
    return tuple(numba_type(value, name) for name, value in zip(names, arguments, strict=True))
