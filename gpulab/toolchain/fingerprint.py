"""What decides the PTX of a Python function, as JSON-like data: its code and every value that it takes from outside.

With it a kernel compiled in an earlier process is found again without importing Numba. Where a value cannot be told
apart safely the answer is None, and the kernel is compiled anew.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import types
from typing import Any

import numpy as np

from gpulab.toolchain.records import ParameterType

_TRUSTED = ("numba", "numba_cuda", "numpy", "math", "cmath", "operator", "builtins", "gpulab.cuda")
_LARGEST_ARRAY_BYTES = 1 << 22


class _UnknownError(Exception):
    """A value whose content cannot be told."""


def of_function(function: types.FunctionType) -> tuple[Any, list[str]] | None:
    """JSON-like data that is equal exactly if the function compiles to the same PTX, and the source files it names.

    None if that cannot be said.
    """
    walk = _Walk()
    try:
        return [list(sys.version_info[:2]), importlib.util.MAGIC_NUMBER.hex(), walk.function(function)], walk.files
    except _UnknownError:
        return None


def of_type(parameter: ParameterType) -> Any:
    """JSON-like data of a parameter's type; structured dtypes with all their fields, names and offsets."""
    dtype = None if parameter.dtype is None else _dtype(parameter.dtype)
    named = (
        None if parameter.tuple_class is None else [parameter.tuple_class.__qualname__, parameter.tuple_class._fields]
    )
    elements = [of_type(element) for element in parameter.elements]
    return [parameter.kind, dtype, parameter.ndim, parameter.layout, parameter.readonly, elements, named]


def _dtype(dtype: np.dtype) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_dtype(base), list(shape)]
    if dtype.fields is None:
        return dtype.str
    fields = [[name, _dtype(dtype.fields[name][0]), dtype.fields[name][1]] for name in dtype.names or ()]
    return [fields, dtype.itemsize, dtype.alignment, dtype.isalignedstruct]


class _Walk:
    """One walk over a function and all that it reaches."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._seen: dict[int, int] = {}

    def function(self, function: types.FunctionType) -> Any:
        if id(function.__code__) in self._seen:
            return ["again", self._seen[id(function.__code__)]]
        self._seen[id(function.__code__)] = len(self._seen)
        code = function.__code__
        if code.co_filename not in self.files:
            self.files.append(code.co_filename)
        names = set(_names(code))
        outside = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            outside[f"closure {name}"] = cell.cell_contents
        return [
            function.__module__, function.__qualname__, self.files.index(code.co_filename), _code(code),
            [self.value(default, names) for default in function.__defaults__ or ()],
            [[name, self.value(value, names)] for name, value in outside.items()],
        ]  # fmt: skip

    def value(self, value: Any, names: set[str]) -> Any:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return [type(value).__name__, repr(value)]
        if isinstance(value, tuple):
            return ["tuple", type(value).__qualname__, [self.value(item, names) for item in value]]
        if isinstance(value, np.dtype):
            return ["dtype", _dtype(value)]
        if isinstance(value, np.generic):
            return ["scalar", _dtype(value.dtype), value.tobytes().hex()]
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        inner = getattr(value, "py_func", None)
        if isinstance(inner, types.FunctionType):
            return ["jitted", self.function(inner), repr(sorted((getattr(value, "targetoptions", None) or {}).items()))]
        return self._trusted(value)

    def _array(self, array: np.ndarray) -> Any:
        if array.nbytes > _LARGEST_ARRAY_BYTES or array.dtype.hasobject:
            raise _UnknownError
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return ["array", _dtype(array.dtype), list(array.shape), list(array.strides), digest]

    def _module(self, module: types.ModuleType, names: set[str]) -> Any:
        if _is_trusted(module.__name__):
            return ["module", module.__name__]
        # Numba reads module.attribute as a constant; only attributes that the code names can matter.
        used = sorted(name for name in names if name in vars(module))
        return ["module", module.__name__, [[name, self.value(vars(module)[name], names)] for name in used]]

    def _trusted(self, value: Any) -> Any:
        home = getattr(value, "__module__", None)
        if isinstance(value, (type, types.BuiltinFunctionType, types.FunctionType)):
            if _is_trusted(home or "builtins"):
                return ["named", home, value.__qualname__]
        elif _is_trusted(type(value).__module__):
            return ["object", type(value).__qualname__, repr(value)] if " at 0x" not in repr(value) else self._unknown()
        return self._unknown()

    @staticmethod
    def _unknown() -> Any:
        raise _UnknownError


def _is_trusted(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _TRUSTED)


def _names(code: types.CodeType) -> list[str]:
    inner = [name for const in code.co_consts if isinstance(const, types.CodeType) for name in _names(const)]
    return [*code.co_names, *inner]


def _code(code: types.CodeType) -> Any:
    consts = [_code(const) if isinstance(const, types.CodeType) else repr(const) for const in code.co_consts]
    return [
        code.co_name, code.co_code.hex(), consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_firstlineno, code.co_linetable.hex(), code.co_flags, code.co_exceptiontable.hex(),
    ]  # fmt: skip
