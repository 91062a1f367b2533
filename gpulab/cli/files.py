"""A kernel out of a file, bound to a launch, and the arrays that it works on."""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import gpulab
from gpulab.cli.arguments import ArrayArgument, ScalarArgument
from gpulab.errors import ArgumentError, CompileError, GpulabError

_ENTRY_IN_CUDA = re.compile(r"__global__\s+(?:\w+\s+|__launch_bounds__\s*\([^)]*\)\s*)*?void\s+"
                            r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(")  # fmt: skip
_ENTRY_IN_PTX = re.compile(r"\.entry\s+([\w$%]+)")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Request:
    """What ``gpulab profile`` or ``check`` was asked: the file, the kernel's name (None for the only one), launch and arguments."""

    file: str
    kernel: str | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[ArrayArgument | ScalarArgument, ...] = ()
    shared_bytes: int = 0
    options: tuple[str, ...] = ()


def prepare(request: Request) -> tuple[Any, list[Any]]:
    """The kernel bound to its launch, and the values of its arguments.

    Raises
    ------
    GpulabError
        If the file can't be read, has no such kernel, or the launch is not allowed.
    """
    kernel = load(Path(request.file), request.kernel, request.options)
    if request.shared_bytes > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = request.shared_bytes
    values = [argument.make(seed) for seed, argument in enumerate(request.arguments)]
    return kernel[request.grid, request.block, 0, request.shared_bytes], values


def save(path: str, values: list[Any]) -> None:
    """Write the arrays among `values` to an ``.npz`` file, under ``arg`` and their position.

    Raises
    ------
    ArgumentError
        If the file can't be written.
    """
    arrays = {f"arg{index}": value for index, value in enumerate(values) if isinstance(value, np.ndarray)}
    try:
        with open(path, "wb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise ArgumentError(f"--save {path}: the file can't be written ({error.strerror}).") from error


def load(path: Path, kernel: str | None, options: tuple[str, ...] = ()) -> Any:
    """The launchable kernel of a file, by name or as the only one.

    Raises
    ------
    ArgumentError
        If the file can't be read, is of another kind, or has no such kernel.
    """
    readers: Mapping[str, Callable[[Path, str | None, tuple[str, ...]], Any]] = {
        ".cu": _load_cuda,
        ".py": _load_python,
        ".ptx": _load_ptx,
    }
    reader = readers.get(path.suffix)
    if reader is None:
        raise ArgumentError(f"FILE must end in .cu, .py or .ptx, but {str(path)!r} came.")
    if options and path.suffix != ".cu":
        raise ArgumentError(f"--option is for NVRTC and .cu files, but {str(path)!r} came.")
    return reader(path, kernel, options)


def _load_cuda(path: Path, kernel: str | None, options: tuple[str, ...]) -> Any:
    source = _read(path)
    names = _ENTRY_IN_CUDA.findall(_COMMENTS.sub(" ", source))
    # An instantiation such as scale<float>, and names that macros make, are the compiler's to judge.
    name = kernel or _only(path, names)
    return gpulab.RawKernel(source, name, options=options, file=str(path))


def _load_ptx(path: Path, kernel: str | None, options: tuple[str, ...]) -> Any:
    text = _read(path)
    names = _ENTRY_IN_PTX.findall(_COMMENTS.sub(" ", text))
    return gpulab.PtxKernel(text, _chosen(path, names, kernel))


def _load_python(path: Path, kernel: str | None, options: tuple[str, ...]) -> Any:
    kernels = {name: value for name, value in vars(_imported(path)).items() if _is_kernel(value)}
    found = kernels[_chosen(path, list(kernels), kernel)]
    if _is_launchable(found):
        return found
    known = {name: found.targetoptions[name] for name in _kept_options() & found.targetoptions.keys()}
    return gpulab.cuda.jit(found.py_func, **known)


def _kept_options() -> set[str]:
    """Options of Numba's own decorator that change what it compiles, and that have a meaning here."""
    from gpulab.toolchain.numba import OPTIONS

    return set(OPTIONS)


def _is_launchable(value: object) -> bool:
    from gpulab.launchables import Launchable

    return isinstance(value, Launchable)


def _is_kernel(value: object) -> bool:
    """A kernel of this package, or one of Numba's dispatchers (from ``numba`` or ``numba_cuda``) that is no device function."""
    if _is_launchable(value):
        return True
    options = getattr(value, "targetoptions", None)
    return isinstance(options, dict) and hasattr(value, "py_func") and not options.get("device")


def _chosen(path: Path, names: list[str], kernel: str | None) -> str:
    if kernel is None:
        return _only(path, names)
    if kernel in names:
        return kernel
    near = difflib.get_close_matches(kernel, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ArgumentError(f"{path} has no kernel {kernel!r}; it has {', '.join(names) or 'none'}.{hint}")


def _only(path: Path, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if not names:
        raise ArgumentError(f"{path} has no kernel: {_HOW[path.suffix]}.")
    raise ArgumentError(f"{path} has several kernels ({', '.join(names)}): choose one with --kernel.")


_HOW = {
    ".cu": "a kernel is a function marked __global__",
    ".py": "a kernel is a function decorated with @cuda.jit at the top level of the file",
    ".ptx": "a kernel is an .entry",
}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{str(path)!r} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{str(path)!r} is not UTF-8 text: {error}.") from error


def _imported(path: Path) -> ModuleType:
    _read(path)
    name = f"gpulab_user_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{str(path)!r} can't be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except GpulabError:
        raise
    except (Exception, SystemExit) as error:
        raise CompileError(f"{path} stopped when it was imported{_where(error, path)}: "
                           f"{type(error).__name__}: {error}") from error  # fmt: skip
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _where(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f" (line {lines[-1]})" if lines else ""
