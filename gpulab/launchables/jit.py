"""``cuda.jit``: Python functions as kernels and device functions."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from gpulab.errors import ArgumentError, CompileError, LaunchError
from gpulab.launchables.base import BoundLaunch, Launchable, is_cupys_form
from gpulab.toolchain import abi
from gpulab.toolchain import numba as compiler
from gpulab.toolchain.records import ParameterType, PtxText

_COMPILED = tuple(compiler.OPTIONS)  # options that change the code of a kernel
_OF_DEVICE_FUNCTIONS = ("inline", "forceinline", "fastmath")
_HARMLESS = {  # options without a meaning here, and the values that ask for nothing that we don't do
    "lineinfo": (True, False), "cache": (True, False), "nopython": (True,), "boundscheck": (None, False, True),
    "lto": (None, False, True), "shared_memory_carveout": None, "inline": ("never", False), "link": ((), [], None),
    "extensions": ((), [], None), "cooperative": (None, False, True),
}  # fmt: skip
_WHY_NOT = {
    "link": "linking other files is not supported: put the code into one kernel or a RawKernel",
    "extensions": "argument extensions of other packages are not supported",
    "inline": 'kernels are not inlined; inline="always" belongs to device functions',
    "nopython": "CUDA kernels are always compiled without the interpreter",
}


def jit(func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
    """Make a kernel, or with ``device=True`` a device function, of a Python function.

    Parameters
    ----------
    func_or_sig : function, signature or list of signatures, optional
        Used as ``@cuda.jit``, ``@cuda.jit(…)``, or with types: ``@cuda.jit("void(float32[:], float32)")``. Without a
        signature the kernel is compiled for the types that it is called with.
    device : bool
        A function for kernels to call.
    **options
        As `numba.cuda.jit`: fastmath, opt, debug, max_registers, launch_bounds, inline, forceinline. Line information
        and the disk cache are always on.

    Returns
    -------
    NumbaKernel, DeviceFunction, or a decorator

    Raises
    ------
    CompileError
        If an option is unknown or asks for something that is not supported.
    """
    chosen = _checked(options, device)
    if isinstance(func_or_sig, (Launchable, DeviceFunction)):
        raise CompileError(f"{func_or_sig.__name__} is decorated with cuda.jit twice; once is enough.")
    if isinstance(func_or_sig, types.FunctionType):
        return _made(func_or_sig, None, device, chosen)

    def decorate(function: types.FunctionType) -> NumbaKernel | DeviceFunction:
        return _made(function, func_or_sig, device, chosen)

    return decorate


def _made(function: Any, signature: Any, device: bool, options: dict[str, Any]) -> NumbaKernel | DeviceFunction:
    if not isinstance(function, types.FunctionType):
        raise CompileError(f"cuda.jit decorates a Python function, but {function!r} came.")
    return DeviceFunction(function, signature, options) if device else NumbaKernel(function, signature, options)


def _checked(options: dict[str, Any], device: bool) -> dict[str, Any]:
    known = {*_COMPILED, *_HARMLESS, *_OF_DEVICE_FUNCTIONS}
    for name, value in options.items():
        if name not in known:
            raise CompileError(f"cuda.jit has no option {name!r}. It has: device, {', '.join(sorted(known))}.")
        allowed = _HARMLESS.get(name)
        if (device and name in _OF_DEVICE_FUNCTIONS) or allowed is None:
            continue
        if not any(value is other or value == other for other in allowed):
            raise CompileError(f"cuda.jit({name}={value!r}): {_WHY_NOT.get(name, 'this value is not supported')}.")
    wanted = (*_COMPILED, *_OF_DEVICE_FUNCTIONS) if device else _COMPILED
    chosen = {name: value for name, value in options.items() if name in wanted and value is not None}
    if isinstance(chosen.get("inline"), bool):  # the older spelling, which Numba reads in this way too
        chosen["inline"] = "always" if chosen["inline"] else "never"
    return chosen


class DeviceFunction:
    """A function that kernels call; made by ``cuda.jit(device=True)``.

    Attributes
    ----------
    py_func : function
        The Python function itself.
    targetoptions : dict
    """

    def __init__(self, function: types.FunctionType, signature: Any, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._signature, self._options = function, signature, options
        self._made: dict[Any, Any] = {}

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Options and signature: with the function's code they decide what it compiles to."""
        return {**self._options, "device": True, "signature": None if self._signature is None else str(self._signature)}

    @property
    def _numba_type_(self) -> Any:
        """What Numba's typing asks of a global of a kernel."""
        return compiler.device_type(self.py_func, self._signature, self._options, self._made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.py_func.__name__
        raise LaunchError(
            f"{name} is a device function: only kernels can call it. To try it on the CPU: {name}.py_func(…)"
        )

    def __repr__(self) -> str:
        return f"<DeviceFunction {self.py_func.__name__}>"


class NumbaKernel(Launchable):
    """A kernel written in Python; made by ``cuda.jit``.

    Attributes
    ----------
    py_func : function
        The Python function itself.
    """

    language = "numba"

    def __init__(
        self, function: types.FunctionType, signature: Any = None, options: dict[str, Any] | None = None
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.name = function, function.__name__
        self._signature, self._options = signature, options or {}
        self._parameter_names = _parameter_names(function)
        self._compiled: dict[Any, PtxText] = {}
        self._made: dict[Any, Any] = {}

    @property
    def source(self) -> str | None:  # type: ignore[override]
        """The function's source text, or None if it was typed in a console."""
        try:
            return inspect.getsource(self.py_func)
        except (OSError, TypeError):
            return None

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Options and signature."""
        return {**self._options, "signature": None if self._signature is None else str(self._signature)}

    @property
    def _numba_type_(self) -> Any:
        # Numba lets a kernel call another one as if it were a device function.
        return compiler.device_type(self.py_func, None, {}, self._made)

    @functools.cached_property
    def _signatures(self) -> tuple[tuple[ParameterType, ...], ...] | None:
        if self._signature is None:
            return None
        given = self._signature if isinstance(self._signature, list) else [self._signature]
        return tuple(self._named(compiler.parse_signature(signature)) for signature in given)

    def _named(self, kinds: tuple[ParameterType, ...]) -> tuple[ParameterType, ...]:
        if len(kinds) != len(self._parameter_names):
            raise CompileError(
                f"{self.name} has {len(self._parameter_names)} parameters ({', '.join(self._parameter_names)}), "
                f"but its signature has {len(kinds)}: {', '.join(map(str, kinds))}."
            )
        pairs = zip(kinds, self._parameter_names, strict=True)
        return tuple(ParameterType(**{**vars(kind), "name": name}) for kind, name in pairs)

    def compile(self, args: Sequence[Any], compute_capability: tuple[int, int]) -> PtxText:
        """PTX for the types of these arguments, or for the declared ones; compiled once for each."""
        types_of_call = self._types(args)
        key = (types_of_call, tuple(compute_capability))
        if key not in self._compiled:
            self._compiled[key] = compiler.compile_kernel(
                self.py_func, types_of_call, compute_capability, **self._options
            )
        return self._compiled[key]

    def _types(self, args: Sequence[Any]) -> tuple[ParameterType, ...]:
        if self._signatures is None:
            return abi.argument_types(self.name, self._parameter_names, args)
        if len(self._signatures) == 1:
            return self._signatures[0]  # packing the arguments tells what does not fit
        came = abi.argument_types(self.name, self._parameter_names, args)
        found = [signature for signature in self._signatures if all(map(_takes, signature, came))]
        exact = [signature for signature in found if [str(kind) for kind in signature] == [str(kind) for kind in came]]
        if not found:
            known = "; ".join(f"({', '.join(map(str, signature))})" for signature in self._signatures)
            raise ArgumentError(f"{self.name} has no signature for ({', '.join(map(str, came))}). It has: {known}.")
        return (exact or found)[0]

    def __call__(self, *args: Any, **options: Any) -> None:
        """Launch in CuPy's form: ``kernel(grid, block, args)``. Without grid and block it is a `LaunchError`."""
        if is_cupys_form(args):
            super().__call__(*args, **options)
            return
        shown = ", ".join(self._parameter_names)
        raise LaunchError(
            f"A kernel needs a launch configuration: {self.name}[grid, block]({shown}), for example "
            f"{self.name}[(n + 255) // 256, 256]({shown}) for n threads."
        )

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        """The kernel launched with one thread for each of `ntasks`, in blocks of `tpb` (default 256)."""
        if ntasks < 0:
            raise LaunchError(f"forall needs a number of tasks that is 0 or more, but {ntasks} came.")
        block = tpb or 256
        if ntasks == 0:
            return lambda *args: None
        return BoundLaunch(self, self[-(-ntasks // block), block, stream, sharedmem].config, stream)

    @property
    def signatures(self) -> list[tuple[ParameterType, ...]]:
        """The argument types that it was compiled for so far."""
        return [kinds for kinds, _ in self._compiled]

    def inspect_asm(self) -> dict[tuple[str, ...], str]:
        """PTX by argument types, for all that it was compiled for so far."""
        return {tuple(map(str, kinds)): ptx.text for (kinds, _), ptx in self._compiled.items()}

    def inspect_sass(self) -> dict[tuple[str, ...], str | None]:
        """SASS by argument types, for all that it was compiled for so far."""
        return {tuple(map(str, kinds)): ptx.assembled.sass for (kinds, _), ptx in self._compiled.items()}

    def get_regs_per_thread(self) -> dict[tuple[str, ...], int | None]:
        """Registers per thread by argument types, for all that it was compiled for so far."""
        return {
            tuple(map(str, kinds)): ptx.assembled.registers_per_thread for (kinds, _), ptx in self._compiled.items()
        }


def _takes(declared: ParameterType, came: ParameterType) -> bool:
    """Whether an argument of type `came` goes into a declared parameter."""
    if declared.kind != came.kind:
        return False
    if declared.kind == "array":
        layout = declared.layout in ("A", came.layout)
        writable = declared.readonly or not came.readonly
        return declared.dtype == came.dtype and declared.ndim == came.ndim and layout and writable
    if declared.kind == "tuple":
        same = len(declared.elements) == len(came.elements)
        return same and all(map(_takes, declared.elements, came.elements))
    if declared.kind == "record":
        return declared.dtype == came.dtype
    assert declared.dtype is not None
    assert came.dtype is not None
    return bool(came.dtype.kind in "biu" or declared.dtype.kind in "fc")


def _parameter_names(function: types.FunctionType) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise CompileError(
                f"A kernel takes a fixed number of positional arguments, but {function.__name__} has "
                f"'{parameter}'. Name each argument, or pass a tuple."
            )
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CompileError(
            f"A kernel cannot yield or await, but {function.__name__} does: write results into an array."
        )
    return tuple(parameter.name for parameter in parameters)
