"""CUDA C++ to PTX with NVIDIA's run-time compiler; no driver and no GPU needed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpulab.errors import CompileError, ToolchainError
from gpulab.toolchain import cache, locate, signature
from gpulab.toolchain.headers import STANDARD_HEADERS
from gpulab.toolchain.nvrtc_log import explain, kernel_base
from gpulab.toolchain.records import PtxText, parameter_as_json, parameter_from_json, require_known

#: Stands for the source's own name in cached PTX, so that one entry serves the same source under any name.
_OWN_FILE = "gpulab-source.cu"


def compile_kernel(
    source: str,
    name: str,
    options: Sequence[str] = (),
    compute_capability: tuple[int, int] = (8, 0),
    file: str | None = None,
) -> PtxText:
    """Compile one kernel of a CUDA C++ source.

    Parameters
    ----------
    source : str
        CUDA C++ device code.
    name : str
        The kernel's name in the source, with or without ``extern "C"``, or an instantiation such as ``scale<float>``.
    options : sequence of str
        Options of NVRTC, e.g. ``("-std=c++17", "-DTILE=32", "--use_fast_math")``. Line information is always on, the
        default standard is C++17, and CUDA's and CCCL's headers are found without options.
    compute_capability : tuple of int
    file : str, optional
        Where the source came from: its folder is searched for ``#include "…"``, and messages name it.

    Raises
    ------
    CompileError
        With the compiler's words and the user's line, or if the source has no such kernel.
    ToolchainError
        If NVRTC is not on this machine or doesn't know the compute capability.
    """
    capability = require_known(compute_capability)
    given = _checked_options(options)
    entry = _cache_key(source, name, given, capability, file)
    stored = cache.read(entry) if entry else None
    if stored is None:
        stored = _compile(source, name, given, capability, file)
        if entry:
            cache.write(entry, stored)
    label = file or f"{kernel_base(name)}.cu"
    return PtxText(
        text=stored["text"].replace(_OWN_FILE, label),
        kernel=stored["kernel"],
        name=name,
        compiler=stored["compiler"],
        compute_capability=capability,
        language="cuda",
        parameters=tuple(map(parameter_from_json, stored["parameters"])),
        source=source,
        file=label,
        register_limit=_register_limit(given),
    )


def compile_functions(source: str, compute_capability: tuple[int, int]) -> str:
    """PTX of a source's device functions, without line information, to be joined to that of a kernel.

    Raises
    ------
    CompileError
        With the compiler's words.
    ToolchainError
        If NVRTC is not on this machine.
    """
    arguments = [b"--relocatable-device-code=true", *_arguments((), compute_capability, source, None)]
    program = _Program(source, None, [argument for argument in arguments if argument != b"-lineinfo"])
    if program.log_of_failure is not None:
        raise CompileError(program.log_of_failure)
    return program.ptx


def _checked_options(options: Sequence[str]) -> tuple[str, ...]:
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise CompileError(
            f'options must be a tuple of strings, e.g. options=("-std=c++17",), but {options!r} came. '
            "A tuple of one needs its comma."
        )
    for option in options:
        if re.match(r"(--gpu-architecture|-arch|--gpu-code|-code)\b", option):
            raise CompileError(
                f"The compute capability comes from the GPU that the kernel runs on, so options must not have "
                f'{option!r}. Choose the GPU instead: gpulab.use("H100").'
            )
    return tuple(options)


def _register_limit(options: Sequence[str]) -> int | None:
    text = " ".join(options)
    match = re.search(r"(?:--maxrregcount|-maxrregcount)[= ](\d+)", text)
    return int(match[1]) if match else None


def _cache_key(
    source: str, name: str, options: tuple[str, ...], capability: tuple[int, int], file: str | None
) -> str | None:
    """None if the source may include files of the user: what they contain is not known before the compiler reads it."""
    if re.search(r'#\s*include\s*"', source) or any(re.match(r"-I|--include|-include", option) for option in options):
        return None
    compiler = [locate.identity(locate.library("nvrtc.so") or locate.library("nvrtc")), str(locate.include_folders())]
    return cache.key(
        "nvrtc", source=source, name=name, options=options, capability=capability, compiler=compiler,
        helpers=[signature.probe(""), STANDARD_HEADERS],
    )  # fmt: skip


def _compile(
    source: str, name: str, options: tuple[str, ...], capability: tuple[int, int], file: str | None
) -> dict[str, Any]:
    """PTX, entry name, compiler and parameters as a cache entry."""
    arguments = _arguments(options, capability, source, file)
    # The probe fails where its template code does not fit the source (old standards, overloads): then do without it.
    program = _Program(source + signature.probe(name), name, arguments)
    if program.log_of_failure is not None:
        program = _Program(source, name, arguments)
    if program.log_of_failure is not None:
        label = (file or f"{kernel_base(name)}.cu").replace("\\", "/")
        log = re.sub(rf"[^\s\"]*{_OWN_FILE}", lambda _: label, program.log_of_failure)
        raise CompileError(explain(log, source, name, label))
    text, table = signature.take_table(program.ptx)
    kernel = program.lowered_name
    parameters = signature.merge(
        signature.entry_parameters(text, kernel), table, signature.declared_parameters(source, name)
    )
    return {
        "text": text,
        "kernel": kernel,
        "compiler": program.version,
        "parameters": [parameter_as_json(parameter) for parameter in parameters],
    }


def _arguments(options: tuple[str, ...], capability: tuple[int, int], source: str, file: str | None) -> list[bytes]:
    arguments = [f"--gpu-architecture=compute_{capability[0]}{capability[1]}", "-lineinfo"]
    if not any(re.match(r"(-std|--std)\b", option) for option in options):
        arguments.append("-std=c++17")
    if "__int128" in source and sys.platform == "linux":  # nvcc has it without asking; elsewhere there is no such type
        arguments.append("--device-int128")
    arguments += [option for option in options if option not in ("-lineinfo", "--generate-line-info")]
    if "include" in source:
        folder = [str(Path(file).resolve().parent)] if file else []
        arguments += [f"-I{path}" for path in (*folder, *locate.include_folders())]
    return [argument.encode() for argument in arguments]


class _Program:
    """One run of the compiler: either `log_of_failure`, or `ptx` and a kernel's `lowered_name` in it."""

    def __init__(self, source: str, name: str | None, arguments: list[bytes]) -> None:
        nvrtc = _bindings()
        self.log_of_failure: str | None = None
        self.ptx = self.lowered_name = ""
        self.version = "NVRTC {}.{}".format(*_checked(nvrtc.nvrtcVersion()))
        names = [name.encode() for name in STANDARD_HEADERS]
        texts = [text.encode() for text in STANDARD_HEADERS.values()]
        (handle,) = _checked(nvrtc.nvrtcCreateProgram(source.encode(), _OWN_FILE.encode(), len(names), texts, names))
        try:
            if name is not None:
                _checked(nvrtc.nvrtcAddNameExpression(handle, name.encode()))
            (result,) = nvrtc.nvrtcCompileProgram(handle, len(arguments), arguments)
            if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                self.log_of_failure = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, handle)
                return
            if name is not None:
                (lowered,) = _checked(nvrtc.nvrtcGetLoweredName(handle, name.encode()))
                self.lowered_name = lowered.decode()
            self.ptx = _own_file(_text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, handle))
        finally:
            nvrtc.nvrtcDestroyProgram(handle)


def _bindings() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ToolchainError(
            f"The CUDA C++ compiler NVRTC is not on this machine ({error}). "
            'Install it with: pip install "cuda-bindings==12.9.*" nvidia-cuda-nvrtc-cu12'
        ) from error
    return nvrtc


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a call of the bindings, whose first item is its error code."""
    code, *values = answer
    if int(code) != 0:
        raise ToolchainError(f"NVRTC failed with {getattr(code, 'name', code)}.")
    return tuple(values)


def _text(size_of: Any, fill: Any, handle: Any) -> str:
    (size,) = _checked(size_of(handle))
    buffer = b" " * size
    _checked(fill(handle, buffer))
    return buffer.decode(errors="replace").rstrip("\0 ")


def _own_file(ptx: str) -> str:
    """NVRTC puts the working folder before the source's name in ``.file``; take it away."""
    return re.sub(rf'(\.file\s+\d+\s+")[^"]*{_OWN_FILE}"', rf'\1{_OWN_FILE}"', ptx)


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a source file.

    Raises
    ------
    ToolchainError
        If it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolchainError(f"The source file {path} cannot be read: {error}.") from error
