"""What users type for kernel arguments, launch dimensions and parameters, read into values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpulab.errors import ArgumentError

DIRECTIONS = ("in", "out", "inout")
FILLS = ("zeros", "ones", "random", "arange")
_FORM = "in|out|inout:DTYPE:SHAPE[:zeros|ones|random|arange], or DTYPE=VALUE for a scalar"


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array of a launch, as ``in:float32:1024x1024:random`` spells it.

    Attributes
    ----------
    direction : str
        ``in``, ``out`` or ``inout``: what the kernel does with it, for the reader; the array is made the same way.
    dtype : numpy.dtype
    shape : tuple of int
    fill : str
        ``zeros`` (also where nothing is said), ``ones``, ``arange``, or ``random``: floating-point numbers in [0, 1),
        integers 0 to 99, the same in every run.
    """

    direction: str
    dtype: np.dtype
    shape: tuple[int, ...]
    fill: str

    def make(self, seed: int) -> np.ndarray:
        """The array, C-contiguous. `seed` tells several random arrays of a launch apart."""
        if self.fill == "random":
            return self._random(np.random.default_rng([20, seed]))
        if self.fill == "arange":
            return np.arange(math.prod(self.shape)).astype(self.dtype).reshape(self.shape)
        return np.full(self.shape, int(self.fill == "ones"), self.dtype)

    def _random(self, rng: np.random.Generator) -> np.ndarray:
        if self.dtype.kind == "b":
            return rng.integers(0, 2, self.shape).astype(self.dtype)
        if self.dtype.kind in "iu":
            return rng.integers(0, 100, self.shape).astype(self.dtype)
        if self.dtype.kind == "c":
            return (rng.random(self.shape) + 1j * rng.random(self.shape)).astype(self.dtype)
        return rng.random(self.shape).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A scalar of a launch, as ``float32=2`` spells it."""

    value: np.generic

    def make(self, seed: int) -> np.generic:
        """The value; `seed` is not used."""
        return self.value


def parse_argument(text: str) -> ArrayArgument | ScalarArgument:
    """Read one ``--arg``.

    Raises
    ------
    ArgumentError
        If it is neither of the two forms; the message says which part does not fit.
    """
    parts = text.split(":")
    if len(parts) == 1 and "=" in text:
        return _scalar(text)
    if len(parts) not in (3, 4) or parts[0] not in DIRECTIONS:
        raise ArgumentError(f"--arg must be {_FORM}, but {text!r} came.")
    fill = parts[3] if len(parts) == 4 else "zeros"
    if fill not in FILLS:
        raise ArgumentError(f"--arg {text}: an array is filled with {', '.join(FILLS)}, but {fill!r} came.")
    return ArrayArgument(parts[0], _dtype(parts[1], text), _shape(parts[2], text), fill)


def _scalar(text: str) -> ScalarArgument:
    name, _, spelled = text.partition("=")
    dtype = _dtype(name, text)
    try:
        return ScalarArgument(dtype.type(_number(spelled, dtype)))
    except (ValueError, OverflowError, KeyError):
        raise ArgumentError(f"--arg {text}: {spelled!r} is not a value of {dtype.name}.") from None


def _number(spelled: str, dtype: np.dtype) -> int | float | complex:
    if dtype.kind in "iu":
        return int(spelled, 0)
    if dtype.kind == "b":
        return {"true": 1, "false": 0}[spelled.lower()] if spelled.isalpha() else int(spelled)
    return complex(spelled) if dtype.kind == "c" else float(spelled)


def _dtype(name: str, text: str) -> np.dtype:
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "biufc":
        raise ArgumentError(
            f"--arg {text}: DTYPE must be a NumPy type of numbers such as float32, float64, int32 or uint8, "
            f"but {name!r} came."
        )
    return dtype


def _shape(spelled: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(_count(part) for part in spelled.split("x"))
    except ValueError:
        raise ArgumentError(
            f"--arg {text}: SHAPE must be sizes joined by x, such as 1048576 or 1024x1024, but {spelled!r} came."
        ) from None


def _count(spelled: str) -> int:
    if not spelled.isdigit():
        raise ValueError(spelled)
    return int(spelled)


def parse_dimensions(text: str) -> tuple[int, ...]:
    """Read a grid or block: ``256``, ``16x16`` or ``16,16``, ordered x, y, z.

    Raises
    ------
    ArgumentError
        If it is anything else. The launch checks the limits.
    """
    parts = text.replace(",", "x").split("x")
    try:
        return tuple(_count(part) for part in parts)
    except ValueError:
        raise ArgumentError(
            f"A grid or block is one to three sizes, such as 256 or 16x16, but {text!r} came."
        ) from None


def parse_setting(text: str) -> tuple[str, int | float | str]:
    """Read one ``--set NAME=VALUE``; the value becomes an int or float where it looks like one.

    Raises
    ------
    ArgumentError
        If there is no ``=``.
    """
    name, equals, spelled = text.partition("=")
    if not (name and equals and spelled):
        raise ArgumentError(f"--set must be NAME=VALUE, such as n=2048, but {text!r} came.")
    for kind in (int, float):
        try:
            return name, kind(spelled)
        except ValueError:
            continue
    return name, spelled
