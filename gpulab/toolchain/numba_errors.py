"""What Numba complains of, in words for the person who wrote the kernel, with the line of their own source."""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence

from gpulab.errors import shown_file

_NO_ALLOCATION = (
    "A kernel cannot make arrays as it runs. Pass one from outside, or use cuda.local.array(shape, dtype) for a few "
    "values of each thread or cuda.shared.array(shape, dtype) for the block, with a constant shape."
)
_RECURSION = (
    "Of recursion Numba's CUDA compiler knows only a device function that calls itself, with arguments of the very types "
    "that it is first called with: convert constants there, f(np.int64(5)). Or rewrite it as a loop."
)
_HINTS = (
    ("readonly array", "The array is read-only, so a kernel must not write to it. Pass a writable one, e.g. x.copy()."),
    ("shared.array", "The shape of cuda.shared.array must be a constant: a number, or a global or closure variable "
                     "that holds an int. Sizes known only at the launch: shape 0 and dynamic shared memory."),
    ("local.array", "The shape of cuda.local.array must be a constant: a number, or a global or closure variable."),
    ("Cannot unify", "A variable must keep one type: give the values different names, or convert them to one type."),
    ("is not aligned", "Fields must lie at multiples of their sizes: make the dtype with np.dtype(…, align=True)."),
    ("insert_unresolved_ref", _RECURSION), ("maximum recursion depth", _RECURSION),
    ("cannot type infer runaway recursion", "Rewrite the function as a loop."),
    ("NRT required", _NO_ALLOCATION), (">>> zeros(", _NO_ALLOCATION), (">>> empty(", _NO_ALLOCATION), (">>> ones(", _NO_ALLOCATION),
    (">>> full(", _NO_ALLOCATION), (">>> zeros_like(", _NO_ALLOCATION), (">>> empty_like(", _NO_ALLOCATION),
    ("Untyped global name", "Numba does not know this value. What belongs to cuda is written with it: cuda.threadIdx."),
    ("failed to unpack", "cuda.grid(n) and cuda.gridsize(n) give n numbers: i = cuda.grid(1); i, j = cuda.grid(2)."),
    ("required for linear algebra", "A kernel has no linear algebra: write it with loops over elements."),
    ("IMPORT_NAME", "A kernel cannot import. Put the import at the top of the file."),
    ("unicode_type", "A GPU kernel has no strings (except as arguments of print)."),
)  # fmt: skip


def explain(error: BaseException, function: types.FunctionType, readonly: Sequence[str] = ()) -> str:
    """The message of a `CompileError`: what is wrong, the user's line, a hint where there is one.

    Parameters
    ----------
    error : exception
        As Numba raised it.
    function : function
        The kernel.
    readonly : sequence of str
        Names of the arguments that are read-only arrays.
    """
    if "must have void return type" in str(error):
        what = "a kernel cannot return a value: write the result into an array argument"
        place: tuple[str, int] | None = (function.__code__.co_filename, _line_of_return(function.__code__))
    else:
        what, place = _summary(error), _place(error, function)
    parts = [f"{function.__name__} does not compile: {what}"]
    if place is not None:
        line = linecache.getline(*place).strip()
        parts.append(f"  {shown_file(place[0])}, line {place[1]}" + (f":\n      {line}" if line else ""))
    hint = next((hint for sign, hint in _HINTS if sign in str(error)), None)
    if hint is not None and hint.startswith("The array is read-only") and len(readonly) == 1:
        hint = hint.replace("The array", f"'{readonly[0]}'").replace("x.copy()", f"{readonly[0]}.copy()")
    return "\n".join([*parts, hint] if hint else parts)


def _summary(error: BaseException) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = re.sub(r"^(?:Failed in \w+ mode pipeline \(step: [^)]*\)\s*)+", "", text).strip()
    if "NRT required" in text:
        return "it makes a new array"
    missing = re.search(r"^No implementation of function .*?>>> ([^\n]+)", text, re.S)
    if missing:
        reasons = dict.fromkeys(re.findall(r"specific error:\s*\n\s*(?:\w+Error: )?([^\n]+)", text))
        shown = re.sub(r"Literal\[(\w+)\]\(([^)]*)\)", r"\1 \2", missing[1].strip())
        told = [reason for reason in reasons if not reason.startswith(("No implementation", "Failed in"))]
        return "; ".join([f"Numba has no {shown}", *told])
    text = re.sub(r"\n*\s*File \"[^\"]*\", line \d+:.*", "", text, flags=re.S)
    text = re.sub(r"\n?During: .*|\.?\. Raised from .*", "", text, flags=re.S).strip()
    # Names that Numba made up, and places that are told below.
    text = re.sub(r" for '\$[^']*'|, defined at [^\n]*\(\d+\)", "", text)
    text = re.sub(r"'(\w+)\.\d+'", r"'\1'", text)
    if isinstance(error, (AttributeError, KeyError, AssertionError)):
        # These come from inside Numba: the construct is one that its CUDA compiler does not know.
        return f"Numba's CUDA compiler does not support what the kernel does here ({type(error).__name__}: {text})"
    return text or type(error).__name__


def _place(error: BaseException, function: types.FunctionType) -> tuple[str, int] | None:
    """File and line that the error is about: the innermost source location that Numba was working on."""
    mentioned = re.search(r"(?:File \"|defined at |Raised from )([^\"\n]+?)(?:\", line | \()(\d+)", str(error))
    places = list(_locations(error, function.__code__.co_filename))
    own = [place for place in places if not place[0].startswith("<numba")]
    users = [place for place in own if not place[0].startswith(_numbas_folders())]
    if own:
        return (users or own)[-1]
    if mentioned and os.path.basename(mentioned[1]) == os.path.basename(function.__code__.co_filename):
        # Numba writes paths relative to the working folder, and a notebook's cell is no file that could be found.
        return function.__code__.co_filename, int(mentioned[2])
    if mentioned:
        return os.path.abspath(mentioned[1]) if os.path.exists(mentioned[1]) else mentioned[1], int(mentioned[2])
    return function.__code__.co_filename, function.__code__.co_firstlineno


def _numbas_folders() -> tuple[str, ...]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in ("numba", "numba.cuda"))
    return tuple(os.path.dirname(file) + os.sep for file in files if file)


def _locations(error: BaseException, file: str) -> Iterator[tuple[str, int]]:
    """Source locations in the local variables of Numba's frames that the error came through, outermost first."""
    traceback = error.__traceback__
    while traceback is not None:
        local = traceback.tb_frame.f_locals
        if "numba" in traceback.tb_frame.f_code.co_filename:
            values = (
                local.get("loc"),
                *(getattr(local.get(name), "loc", None) for name in ("inst", "stmt", "constraint")),
            )
            for value in values:
                if isinstance(getattr(value, "line", None), int) and isinstance(getattr(value, "filename", None), str):
                    yield value.filename, value.line
            instruction = getattr(local.get("state"), "get_inst", None)  # the reader of bytecode knows only lines
            if instruction is not None:
                yield file, instruction().lineno
        traceback = traceback.tb_next


def _line_of_return(code: types.CodeType) -> int:
    """The line of a ``return`` with a value."""
    line, previous = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        here = instruction.positions.lineno if instruction.positions else None
        gives_none = (
            instruction.argval is None if instruction.opname == "RETURN_CONST" else previous == ("LOAD_CONST", None)
        )
        if instruction.opname.startswith("RETURN_") and instruction.opname != "RETURN_GENERATOR" and not gives_none:
            return here or line
        previous = (instruction.opname, instruction.argval)
    return line
