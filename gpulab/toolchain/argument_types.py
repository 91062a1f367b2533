"""Types of the arguments of a Numba kernel, found without importing Numba (which takes seconds)."""

from __future__ import annotations

import math
import numbers
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.errors import ArgumentError
from gpulab.toolchain.records import ParameterType


class GpuArray:
    """Base of the arrays that live in a GPU's memory; devices subclass it.

    Attributes
    ----------
    shape, strides : tuple of int
        In items and in bytes.
    dtype : numpy.dtype
    address : int
        Of the first item, in the GPU's address space.
    readonly : bool
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    address: int
    readonly: bool = False


@dataclass(frozen=True)
class ArrayFacts:
    """What a launch needs to know of an array, wherever it lives. Strides in bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool

    @property
    def size(self) -> int:
        """Number of items."""
        return math.prod(self.shape)

    @property
    def layout(self) -> str:
        """``C`` or ``F`` if contiguous in that order, else ``A``, by NumPy's rules (axes of length 1 don't count)."""
        if self.size == 0 or self.strides == contiguous_strides(self.shape, self.dtype.itemsize):
            return "C"
        axes = [axis for axis, length in enumerate(self.shape) if length != 1]
        for layout, order in (("C", axes[::-1]), ("F", axes)):
            expected, matches = self.dtype.itemsize, True
            for axis in order:
                matches = matches and self.strides[axis] == expected
                expected *= self.shape[axis]
            if matches:
                return layout
        return "A"


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array."""
    strides: list[int] = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def array_facts(value: Any) -> ArrayFacts | None:
    """The facts of an array argument, or None if `value` is no array.

    NumPy arrays, a device's own arrays, and arrays of other libraries with ``__cuda_array_interface__`` count.
    """
    if isinstance(value, np.ndarray):
        return ArrayFacts(value.dtype, value.shape, value.strides, not value.flags.writeable)
    if isinstance(value, GpuArray):
        return ArrayFacts(value.dtype, value.shape, value.strides, value.readonly)
    interface = getattr(value, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        return None
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides") or contiguous_strides(shape, dtype.itemsize)
    return ArrayFacts(dtype, shape, tuple(strides), bool(interface["data"][1]))


def numba_type(value: Any, name: str = "") -> ParameterType:
    """The type that Numba gives to an argument.

    Python's int is int64 (uint64 above 2**63 - 1), its float is float64; NumPy scalars keep their type.

    Raises
    ------
    ArgumentError
        If a kernel cannot take such a value; the message says what it can take.
    """
    facts = array_facts(value)
    if facts is not None:
        require_unmasked(value, name)
        _require_supported(facts.dtype, name)
        return ParameterType(
            "array", name, facts.dtype, ndim=len(facts.shape), layout=facts.layout, readonly=facts.readonly
        )
    if isinstance(value, tuple):
        elements = tuple(numba_type(element, f"{name}[{i}]") for i, element in enumerate(value))
        named = type(value) if hasattr(value, "_fields") else None
        return ParameterType("tuple", name, elements=elements, tuple_class=named)
    if isinstance(value, np.void) and value.dtype.names:
        return ParameterType("record", name, value.dtype)
    return ParameterType("scalar", name, _scalar_dtype(value, name))


def require_unmasked(value: Any, name: str) -> None:
    """Raise an `ArgumentError` for a masked array: a kernel would not see its mask."""
    # NumPy loads that part when it is first used, which takes a while; without it there is no masked array.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            f"Argument {_shown(name)} is a masked array, and a kernel cannot see the mask. Pass x.data or x.filled(0)."
        )


def _scalar_dtype(value: Any, name: str) -> np.dtype:
    if isinstance(value, np.generic):
        _require_supported(value.dtype, name)
        return value.dtype
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, numbers.Integral):
        number = int(value)
        if -(2**63) <= number < 2**64:
            return np.dtype(np.int64 if number < 2**63 else np.uint64)
        raise ArgumentError(f"Argument {_shown(name)} must fit into 64 bits, but {number} came.")
    if isinstance(value, float):
        return np.dtype(np.float64)
    if isinstance(value, complex):
        return np.dtype(np.complex128)
    raise ArgumentError(_refusal(value, name))


def _refusal(value: Any, name: str) -> str:
    what = "None" if value is None else f"a {type(value).__name__}"
    hint = {
        list: " Make it an array: np.array(…, dtype=np.float32).",
        type(None): " A kernel has no optional arguments: pass an empty array or a flag instead.",
        str: " A GPU has no strings.",
    }.get(type(value), "")
    return f"Argument {_shown(name)} must be an array, a number, a bool or a tuple of these, but {what} came.{hint}"


def require_plain_bytes(dtype: np.dtype, name: str) -> None:
    """Raise an `ArgumentError` for items that are Python objects, or whose bytes lie in another order."""
    if dtype.hasobject:
        raise ArgumentError(_unknown(dtype, name, "np.float32"))
    if not dtype.isnative:
        raise ArgumentError(
            f"Argument {_shown(name)} must be in this machine's byte order, but {dtype.str} came. "
            f"Convert it: x.astype(x.dtype.newbyteorder('='))."
        )


def _require_supported(dtype: np.dtype, name: str) -> None:
    require_plain_bytes(dtype, name)
    if dtype.kind in "USV" and not dtype.names:
        raise ArgumentError(_unknown(dtype, name, "an integer type"))


def _unknown(dtype: np.dtype, name: str, hint: str) -> str:
    return f"Argument {_shown(name)} must have a dtype that a GPU knows, but {dtype} came. Convert it, e.g. to {hint}."


def _shown(name: str) -> str:
    return f"'{name}'" if name else ""
