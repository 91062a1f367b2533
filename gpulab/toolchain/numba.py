"""Python kernels to PTX with Numba's CUDA compiler; no driver and no GPU needed.

The only module that knows which package provides that compiler.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Sequence
from functools import cache as memoize
from importlib import metadata
from pathlib import Path
from typing import Any

from gpulab.errors import ArgumentError, CompileError, ToolchainError
from gpulab.toolchain import cache, fingerprint, linking, locate, numba_errors, numba_exceptions
from gpulab.toolchain.records import ParameterType, PtxText, require_known

#: Options that decide what the compiler makes, with their defaults.
OPTIONS: dict[str, Any] = {
    "fastmath": False, "opt": True, "debug": False, "max_registers": None, "launch_bounds": None, "forceinline": False,
}  # fmt: skip

_GRID_SYNC = Path(__file__).with_name("grid_sync.cu")
_OLD_DIALECT = (9, 0)
"""The newest compute capability for which libNVVM reads all that Numba writes."""
_LOCK = threading.RLock()
_current_capability: tuple[int, int] = (8, 0)


def compile_kernel(
    pyfunc: types.FunctionType,
    argument_types: Sequence[ParameterType],
    compute_capability: tuple[int, int],
    **options: Any,
) -> PtxText:
    """Compile a Python function as a kernel for the given argument types. Line information is always on.

    Parameters
    ----------
    pyfunc : function
        Its globals and closure may hold `gpulab.cuda` and device functions made with ``gpulab.cuda.jit``.
    argument_types : sequence of ParameterType
        One for each parameter, see `numba_type`.
    compute_capability : tuple of int
    **options
        See `OPTIONS`; the meaning is that of ``numba.cuda.jit``. With ``debug=True`` Python exceptions in the kernel
        are recorded, the code stays optimized.

    Raises
    ------
    CompileError
        With the user's line, for typing errors and unsupported Python.
    ToolchainError
        If Numba's CUDA compiler is not on this machine or doesn't know the compute capability.
    """
    capability = require_known(compute_capability)
    chosen = {**OPTIONS, **options}
    print_of_function = fingerprint.of_function(pyfunc)
    entry, files = None, [pyfunc.__code__.co_filename]
    if print_of_function is not None:
        content, files = print_of_function
        kinds = [fingerprint.of_type(parameter) for parameter in argument_types]
        entry = cache.key(
            "numba", function=content, types=kinds, capability=capability, options=chosen, compiler=_compiler_identity()
        )
    stored = cache.read(entry) if entry else None
    if stored is None:
        stored = _compiled(pyfunc, argument_types, capability, chosen)
        stored["text"] = _anonymous(stored["text"], files)
        if entry:
            cache.write(entry, stored)
    source, first_line = _source(pyfunc)
    return PtxText(
        text=_with_files(stored["text"], files),
        kernel=stored["kernel"],
        name=pyfunc.__name__,
        compiler=stored["compiler"],
        compute_capability=capability,
        language="numba",
        parameters=tuple(argument_types),
        source=source,
        file=pyfunc.__code__.co_filename,
        source_line=first_line,
        register_limit=chosen["max_registers"],
        exceptions=tuple((int(code), text) for code, text in stored["exceptions"]),
    )


def parse_signature(signature: Any) -> tuple[ParameterType, ...]:
    """The argument types of a signature such as ``"void(float32[:, :], int32)"`` or Numba's own objects.

    Raises
    ------
    CompileError
        If it is not a signature.
    ArgumentError
        If a kernel cannot take one of its types.
    """
    sigutils = _module("numba.cuda.core.sigutils")
    try:
        arguments, result = sigutils.normalize_signature(signature)
    except Exception as error:
        raise CompileError(
            f'A signature must look like "void(float32[:], int32)", but {signature!r} came: {error}'
        ) from error
    if result is not None and str(result) not in ("none", "void"):
        raise CompileError(f"A kernel cannot return a value, but the signature {signature!r} has one. Write void(…).")
    return tuple(_parameter_from(kind) for kind in arguments)


def device_type(pyfunc: types.FunctionType, signature: Any, options: dict[str, Any], made: dict[Any, Any]) -> Any:
    """Numba's type of a device function, for the compilation that is running; `made` keeps it for the next one."""
    with _LOCK:
        if _current_capability not in made:
            jit = _module("numba.cuda").jit
            given = {name: value for name, value in options.items() if name in ("inline", "forceinline", "fastmath")}
            function = _rebuilt(pyfunc)
            if signature is not None and getattr(pyfunc.__globals__.get(pyfunc.__name__), "py_func", None) is pyfunc:
                # As where it is decorated: Numba finds a function that calls itself by its name.
                del function.__globals__[pyfunc.__name__]
            with _without_driver(_current_capability):
                # Known before it is compiled, since a recursive function meets itself in its own body.
                made[_current_capability] = jit(device=True, **given)(function)
                _compile_for(made[_current_capability], signature)
        return made[_current_capability]._numba_type_


def _compile_for(function: Any, signature: Any) -> None:
    """Compile one of Numba's device functions for a signature or several, and for no others."""
    if signature is None:
        return
    inference, sigutils = _module("numba.cuda.core.typeinfer"), _module("numba.cuda.core.sigutils")
    for each in signature if isinstance(signature, list) else [signature]:
        arguments, result = sigutils.normalize_signature(each)
        with inference.register_dispatcher(function):
            function.compile_device(arguments, result)
    function._specialized = not isinstance(signature, list)
    function.disable_compile()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ToolchainError(
            f'Numba\'s CUDA compiler is not on this machine ({error}). Install it with: pip install "numba-cuda[cu12]"'
        ) from error


@memoize
def _compiler_identity() -> list[str]:
    """Versions of all that takes part, found without importing any of it."""
    found = []
    for package in ("numba-cuda", "numba", "llvmlite"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{package} {metadata.version(package)}")
    return [*found, *(locate.identity(locate.library(name)) for name in ("nvvm", "nvrtc"))]


def _compiled(
    pyfunc: types.FunctionType,
    argument_types: Sequence[ParameterType],
    capability: tuple[int, int],
    options: dict[str, Any],
) -> dict[str, Any]:
    try:
        return _compile(pyfunc, argument_types, capability, options)
    except CompileError as error:
        # libNVVM reads another dialect for Blackwell, which lacks what Numba writes for atomics on floats. What is compiled
        # for Hopper runs there as well.
        if capability <= _OLD_DIALECT or "ERROR_INVALID_IR" not in str(error):
            raise
        return _compile(pyfunc, argument_types, _OLD_DIALECT, options)


def _compile(
    pyfunc: types.FunctionType,
    argument_types: Sequence[ParameterType],
    capability: tuple[int, int],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Text, entry name, compiler and exceptions as a cache entry."""
    global _current_capability
    compiler = _module("numba.cuda.compiler")
    nvvm = _module("numba.cuda.cudadrv.nvvm")
    kinds = tuple(_numba_type_of(parameter) for parameter in argument_types)
    nvvm_options = {"fastmath": options["fastmath"], "opt": 3 if options["opt"] else 0}
    with _LOCK, _without_driver(capability), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*(Could not find source|Debug line information)")
        outer, _current_capability = _current_capability, capability
        try:
            result = compiler.compile_cuda(
                _rebuilt(pyfunc), None, kinds, debug=options["debug"], lineinfo=True, cc=capability,
                fastmath=options["fastmath"], nvvm_options=nvvm_options, max_registers=options["max_registers"],
            )  # fmt: skip
            if str(result.signature.return_type) not in ("none", "void"):
                raise TypeError("CUDA kernel must have void return type.")
            library = result.library
            kernel = library.get_function(result.fndesc.llvm_func_name)
            library._entry_name = result.fndesc.llvm_func_name
            compiler.kernel_fixup(kernel, options["debug"])
            nvvm.set_launch_bounds(kernel, options["launch_bounds"])
            text = linking.joined(library.get_asm_str(cc=capability), _sources_of(pyfunc, library), capability)
        except (ToolchainError, CompileError):
            raise
        except Exception as error:
            if type(error).__name__ in ("NvvmSupportError", "CudaSupportError"):
                raise ToolchainError(f"Numba's CUDA compiler does not work on this machine: {error}") from error
            readonly = [parameter.name for parameter in argument_types if parameter.readonly]
            # Numba's own traceback has hundreds of lines and no word for the person who wrote the kernel.
            raise CompileError(numba_errors.explain(error, pyfunc, readonly)) from None
        finally:
            _current_capability = outer
    exceptions = getattr(result.call_helper, "exceptions", {}) if options["debug"] else {}
    return {
        "text": text + "\n",
        "kernel": kernel.name,
        "compiler": _compiler_name(text),
        "exceptions": numba_exceptions.described(exceptions, text),
    }


def _sources_of(pyfunc: types.FunctionType, library: Any) -> list[str]:
    """The CUDA C++ that the kernel calls: Numba has its functions on float16 and bfloat16 in it."""
    sources = [file for file in library._linking_files if getattr(file, "kind", None) == "cu"]
    files = sorted(str(getattr(file, "name", file)) for file in library._linking_files if file not in sources)
    if files:
        raise CompileError(
            f"{pyfunc.__name__} needs code from other files ({', '.join(files)}), and linking is not supported. "
            "Put that code into a device function of Python, or write the kernel in CUDA C++."
        )
    grid = [_GRID_SYNC.read_text(encoding="utf-8")] if library.use_cooperative else []
    return [file.data for file in sources] + grid


def _compiler_name(text: str) -> str:
    release = re.search(r"release (\d+\.\d+)", text)
    package = next((found for found in _compiler_identity() if found.startswith("numba-cuda")), "Numba")
    return f"{package} / libNVVM {release[1]}" if release else package


@contextlib.contextmanager
def _without_driver(capability: tuple[int, int]) -> Iterator[None]:
    """Numba asks the driver for the current GPU when a kernel calls a device function; answer in its place."""
    dispatcher = _module("numba.cuda.dispatcher")
    device = types.SimpleNamespace(compute_capability=capability)
    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: device
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def _rebuilt(function: types.FunctionType) -> types.FunctionType:
    """The same function with `gpulab.cuda` exchanged for Numba's own module, the only one that its typing knows."""
    code = function.__code__
    scope = {name: _exchanged(value) for name, value in function.__globals__.items()}
    cells = tuple(types.CellType(_exchanged(cell.cell_contents)) for cell in function.__closure__ or ())
    made = types.FunctionType(code, scope, function.__name__, function.__defaults__, cells or None)
    made.__kwdefaults__, made.__qualname__, made.__module__ = (
        function.__kwdefaults__, function.__qualname__, function.__module__,
    )  # fmt: skip
    return made


def _exchanged(value: Any) -> Any:
    ours = sys.modules.get("gpulab.cuda")
    if ours is not None and value is ours:
        return _module("numba.cuda")
    if isinstance(value, types.ModuleType) and value.__name__ == "gpulab":
        stand_in = types.ModuleType("gpulab")
        stand_in.__dict__["cuda"] = _module("numba.cuda")
        return stand_in
    return value


def _numba_type_of(parameter: ParameterType) -> Any:
    kinds, support = _module("numba.cuda.types"), _module("numba.cuda.np.numpy_support")
    if parameter.kind == "tuple":
        elements = [_numba_type_of(element) for element in parameter.elements]
        return kinds.BaseTuple.from_types(elements, parameter.tuple_class or tuple)
    try:
        item = support.from_dtype(parameter.dtype)
    except Exception as error:
        raise ArgumentError(
            f"Argument '{parameter.name}' has dtype {parameter.dtype}, which Numba does not know on a GPU."
        ) from error
    if parameter.kind == "array":
        return kinds.Array(item, parameter.ndim, parameter.layout, readonly=parameter.readonly)
    return item


def _parameter_from(kind: Any) -> ParameterType:
    """Our record of one of Numba's types."""
    kinds, support = _module("numba.cuda.types"), _module("numba.cuda.np.numpy_support")
    if hasattr(kind, "layout") and hasattr(kind, "ndim"):
        return ParameterType(
            "array", dtype=support.as_dtype(kind.dtype), ndim=kind.ndim, layout=kind.layout, readonly=not kind.mutable
        )
    if isinstance(kind, kinds.BaseTuple):
        return ParameterType("tuple", elements=tuple(_parameter_from(element) for element in kind))
    try:
        dtype = support.as_dtype(kind)
    except Exception as error:
        raise ArgumentError(f"A kernel cannot take an argument of Numba's type {kind}.") from error
    return ParameterType("record" if dtype.names else "scalar", dtype=dtype)


def _anonymous(text: str, files: list[str]) -> str:
    """The PTX with numbers in place of its source files' names, which change from process to process in a notebook."""
    for number, file in enumerate(files):
        text = re.sub(rf'(\.file\s+\d+\s+")[^"]*?{re.escape(file)}"', rf'\g<1><source {number}>"', text)
    return text


def _with_files(text: str, files: list[str]) -> str:
    for number, file in enumerate(files):
        text = text.replace(f'"<source {number}>"', f'"{file}"')
    return text


def _source(function: types.FunctionType) -> tuple[str | None, int]:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):  # typed in a console: there is no source to show
        return None, function.__code__.co_firstlineno
    return "".join(lines), max(first, 1)
