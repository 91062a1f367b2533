"""CUDA C++ that a Python kernel calls, compiled and joined to the kernel's PTX, as a linker would do with object files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpulab.toolchain import nvrtc

_HEADER = re.compile(r"^\s*\.(version|target|address_size)\b.*$", re.MULTILINE)
_FUNCTION = re.compile(r"^\.visible \.func\s+(?:\([^()]*\)\s*)?(\w+)", re.MULTILINE)
_DECLARATION = re.compile(r"^\.extern \.func\s+(?:\([^()]*\)\s*)?(\w+)\s*\([^()]*\)\s*;", re.MULTILINE)


def joined(kernel: str, sources: Sequence[str], compute_capability: tuple[int, int]) -> str:
    """One PTX text of a kernel and of the functions that it declares and other sources define.

    Parameters
    ----------
    kernel : str
        PTX with ``.extern .func`` declarations.
    sources : sequence of str
        CUDA C++ with ``extern "C" __device__`` functions; those that the kernel does not call are left out.
    compute_capability : tuple of int

    Raises
    ------
    CompileError
        If a source does not compile.
    """
    for source in sources:
        rest, functions = _taken_apart(_HEADER.sub("", nvrtc.compile_functions(source, compute_capability)))
        wanted = [found[1] for found in _DECLARATION.finditer(kernel) if found[1] in functions]
        kernel = _DECLARATION.sub(lambda found, known=wanted: "" if found[1] in known else found[0], kernel)
        # A function stands before its first call, hence before the kernel.
        start = re.search(r"^\.address_size.*$", kernel, re.MULTILINE)
        assert start is not None
        kernel = "\n".join([kernel[: start.end()], rest, *map(functions.__getitem__, wanted), kernel[start.end() :]])
    return kernel


def _taken_apart(text: str) -> tuple[str, dict[str, str]]:
    """A module without its visible functions, and these by name."""
    rest, functions, done = [], {}, 0
    for found in _FUNCTION.finditer(text):
        end = _end_of_block(text, text.index("{", found.end()))
        functions[found[1]] = text[found.start() : end]
        rest.append(text[done : found.start()])
        done = end
    return "".join([*rest, text[done:]]), functions


def _end_of_block(text: str, start: int) -> int:
    """Place behind the brace that closes the one at `start`; inline assembly has braces of its own."""
    depth = 0
    for found in re.finditer(r"[{}]", text[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.end()
    raise AssertionError("NVRTC closes every brace")
