"""What the values of a GPU must be: their kind, their unit, and whether they make sense in it."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpulab.errors import ArgumentError

#: Values that may be 0: what a GPU does not have, or what a what-if takes away.
_MAY_BE_ZERO = ("tensor_", "reserved_", "l1_tag_", "block_turnaround_s", "launch_")


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a value means, told by its name, and the range outside of which it must be a slip of the unit."""

    ending: str
    words: str
    low: float
    high: float


_UNITS = (
    _Unit("clock_hz", "in Hz: 1.41 GHz is 1.41e9", 1e7, 1e11),
    _Unit("_gb_per_s", "in GB/s (1e9 byte/s)", 1, 1e7),
    _Unit("_tflop_per_s", "in TFLOP/s (1e12 FLOP/s)", 1e-3, 1e6),
    _Unit("_gbit_per_s_per_pin", "in Gbit/s (1e9 bit/s) for each pin", 0.1, 1e3),
    _Unit("_efficiency", "a share from 0 to 1", 0, 1),
    _Unit("_cycles", "in SM cycles", 0, 1e6),
    _Unit("_s", "in seconds: 2.6 µs is 2.6e-6", 0, 0.1),
    _Unit("memory_bytes", "in bytes: 16 GiB is 17_179_869_184", 2**24, 2**60),
    _Unit("l2_bytes", "in bytes: 40 MiB is 41_943_040", 2**10, 2**40),
    _Unit("l1_bytes", "in bytes: 128 KiB is 131_072", 2**10, 2**30),
)


def checked(name: str, value: Any, kind: str, where: str = "") -> Any:
    """The value of a field in its kind.

    Parameters
    ----------
    name : str
        The field's.
    value : object
    kind : str
        The annotation of the field: ``int``, ``float``, ``float | None``, ``str`` or a tuple of ``int`` or ``str``.
    where : str
        Where the value came from, for the message: ``" in the GPU file 'mine.toml'"``.

    Raises
    ------
    ArgumentError
        If it is of another kind, or makes no sense in its unit.
    """
    if kind == "str":
        if not isinstance(value, str) or not value.strip():
            raise ArgumentError(f"{name} must be a text, but {value!r} came{where}.")
        return value
    if kind.startswith("tuple"):
        return _several(name, value, kind, where)
    if value is None and kind.endswith("None"):
        return None
    return _number(name, value, kind, where)


def _several(name: str, value: Any, kind: str, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{name} must be a list, but {value!r} came{where}.")
    if "str" in kind:
        return tuple(checked(name, item, "str", where) for item in value)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int) or item < 0:
            raise ArgumentError(f"{name} must be a list of whole numbers of at least 0, but {value!r} came{where}.")
    return tuple(value)


def _number(name: str, value: Any, kind: str, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value != value:
        raise ArgumentError(f"{name} must be a number, but {value!r} came{where}.")
    least_is_zero = name.startswith(_MAY_BE_ZERO)
    if value < 0 or (value == 0 and not least_is_zero):
        raise ArgumentError(f"{name} must be {'at least' if least_is_zero else 'above'} 0, but {value!r} came{where}.")
    unit = next((unit for unit in _UNITS if name.endswith(unit.ending)), None)
    if unit and value and not unit.low <= value <= unit.high:
        raise ArgumentError(f"{name} is {unit.words}, but {value!r} came{where}.")
    if kind != "int":
        return float(value) if not isinstance(value, (int, float)) else value
    if value != value // 1:
        raise ArgumentError(f"{name} must be a whole number, but {value!r} came{where}.")
    return int(value)


def unknown(name: str, fields: Iterable[str], where: str = "") -> ArgumentError:
    """The error for a name that is no field, with the names that it may have been meant for."""
    fields = sorted(fields)
    near = difflib.get_close_matches(name, fields, n=3, cutoff=0.5) or [item for item in fields if name in item][:3]
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return ArgumentError(f"A Gpu has no {name!r}{where}.{hint} `help(gpulab.Gpu)` explains all of its values.")
