"""The records that compilers hand on: `PtxText` (a kernel as PTX) and `ParameterType` (one parameter of it)."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpulab.toolchain.ptxas import Assembled

#: Compute capabilities that the compilers of CUDA 12.9 make code for.
COMPUTE_CAPABILITIES = (
    (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 1), (10, 3), (12, 0), (12, 1),
)  # fmt: skip


@dataclass(frozen=True)
class ParameterType:
    """One parameter of a kernel, as the user declared it.

    Attributes
    ----------
    kind : str
        ``array``, ``scalar``, ``tuple`` and ``record`` for Numba; ``pointer``, ``scalar`` and ``struct`` for C++ and
        PTX.
    name : str
        The parameter's name, or ``""`` where it is not known.
    dtype : numpy.dtype or None
        Of a scalar, of an array's items, or of what an arithmetic pointer points to; None for ``void*`` and the like.
    ndim, layout, readonly
        Of a Numba array; `layout` is ``C``, ``F`` or ``A`` (any strides). A C++ pointer to const is `readonly`.
    size, align : int
        Bytes in the parameter buffer (scalar, pointer, struct).
    elements : tuple of ParameterType
        Of a tuple.
    tuple_class : type or None
        The class of a named tuple.
    spelling : str
        The C++ type as written, where known.
    """

    kind: str
    name: str = ""
    dtype: np.dtype | None = None
    ndim: int = 0
    layout: str = "C"
    readonly: bool = False
    size: int = 0
    align: int = 0
    elements: tuple[ParameterType, ...] = ()
    tuple_class: type | None = None
    spelling: str = ""

    def __str__(self) -> str:
        if self.spelling:
            return self.spelling
        if self.kind == "tuple":
            return f"({', '.join(map(str, self.elements))})"
        if self.kind == "array":
            axes = [":"] * self.ndim
            if axes and self.layout != "A":
                axes[-1 if self.layout == "C" else 0] = "::1"
            return f"{dtype_name(self.dtype)}[{', '.join(axes)}]"
        if self.dtype is None:
            return {"pointer": "pointer", "struct": f"struct of {self.size} bytes"}.get(self.kind, self.kind)
        return dtype_name(self.dtype) + ("*" if self.kind == "pointer" else "")


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: np.dtype | None) -> str:
    """How messages call a dtype: ``float32``, or ``record`` with its fields for a structured one."""
    if dtype is None:
        return "unknown"
    if dtype.names:
        return "record(" + ", ".join(f"{name}: {dtype_name(dtype[name])}" for name in dtype.names) + ")"
    return str(dtype)


@dataclass(frozen=True, eq=False)
class PtxText:
    """A kernel compiled to PTX.

    Attributes
    ----------
    text : str
        The PTX module.
    kernel : str
        Name of the entry in the PTX.
    name : str
        The user's name of the kernel.
    compiler : str
        Who made it, with versions.
    compute_capability : tuple of int
    language : str
        ``numba``, ``cuda`` or ``ptx``.
    parameters : tuple of ParameterType
        In the user's order.
    source : str or None
        The user's source, if known; its first line has the number `source_line` in `file`.
    file : str or None
        Where the source is; the name that ``.file`` in the PTX has.
    source_line : int
    register_limit : int or None
        Upper limit of registers per thread that the assembler shall keep to.
    """

    text: str
    kernel: str
    name: str
    compiler: str
    compute_capability: tuple[int, int]
    language: str
    parameters: tuple[ParameterType, ...] = ()
    source: str | None = None
    file: str | None = None
    source_line: int = 1
    register_limit: int | None = None
    exceptions: tuple[tuple[int, str], ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of text and entry: the same kernel has the same digest in every process."""
        return hashlib.sha256(f"{self.kernel}\0{self.text}".encode()).hexdigest()

    @cached_property
    def assembled(self) -> Assembled:
        """What ``ptxas`` says of it: registers, spills, shared memory, SASS."""
        from gpulab.toolchain import ptxas

        return ptxas.assemble(
            self.text, self.compute_capability, kernel=self.kernel, register_limit=self.register_limit
        )

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        return f"<PtxText {self.name} ({self.language}, sm_{major}{minor}, {len(self.text.splitlines())} lines)>"


def require_known(compute_capability: tuple[int, int]) -> tuple[int, int]:
    """Return the capability as a tuple if CUDA 12.9 compiles for it.

    Raises
    ------
    ToolchainError
        If it does not; the message lists those that it knows.
    """
    from gpulab.errors import ToolchainError

    capability = (int(compute_capability[0]), int(compute_capability[1]))
    if capability not in COMPUTE_CAPABILITIES:
        known = ", ".join(f"{major}.{minor}" for major, minor in COMPUTE_CAPABILITIES)
        shown = ".".join(map(str, capability))
        raise ToolchainError(f"No compiler here makes code for compute capability {shown}. It can be one of {known}.")
    return capability


def parameter_as_json(parameter: ParameterType) -> dict[str, Any]:
    """A C++ or PTX parameter as JSON-like data, for the cache; `parameter_from_json` reads it."""
    return {
        "kind": parameter.kind, "name": parameter.name, "dtype": parameter.dtype.str if parameter.dtype else None,
        "readonly": parameter.readonly, "size": parameter.size, "align": parameter.align,
        "spelling": parameter.spelling,
    }  # fmt: skip


def parameter_from_json(data: dict[str, Any]) -> ParameterType:
    """The inverse of `parameter_as_json`."""
    dtype = data["dtype"]
    return ParameterType(**{**data, "dtype": np.dtype(dtype) if dtype else None})
