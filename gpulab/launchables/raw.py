"""Kernels from CUDA C++ source and from PTX, with CuPy's spelling."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from gpulab.errors import ArgumentError, CompileError, LaunchError
from gpulab.launchables.base import Launchable
from gpulab.toolchain import abi, nvrtc, ptx_source
from gpulab.toolchain.records import PtxText


class _CallableKernel(Launchable):
    """A kernel whose types its source declares."""

    def __call__(self, *args: Any, shared_mem: int = 0, stream: Any = None) -> None:
        """Launch in CuPy's form: ``kernel(grid, block, args)``; ``kernel[grid, block](*args)`` is the same."""
        if len(args) != 3 or not isinstance(args[2], (tuple, list)):
            raise LaunchError(
                f"{self.name} is launched as {self.name}(grid, block, (arguments…)) or as "
                f"{self.name}[grid, block](arguments…), but {self.name}({', '.join(map(abi.described, args))}) came."
            )
        super().__call__(*args, shared_mem=shared_mem, stream=stream)

    def _assembled(self) -> Any:
        from gpulab.devices import current

        return self.compile((), current().gpu.compute_capability).assembled

    @property
    def num_regs(self) -> int | None:
        """Registers per thread on the current GPU; None without ``ptxas``."""
        return self._assembled().registers_per_thread

    @property
    def shared_size_bytes(self) -> int | None:
        """Static shared memory per block, bytes; None without ``ptxas``."""
        return self._assembled().static_shared_bytes

    @property
    def local_size_bytes(self) -> int | None:
        """Local memory per thread, bytes; None without ``ptxas``."""
        return self._assembled().stack_bytes


class RawKernel(_CallableKernel):
    """A kernel in CUDA C++, with the spelling of ``cupy.RawKernel``.

    Parameters
    ----------
    code : str
        CUDA C++ source; it may have several kernels and device functions.
    name : str
        Name of the kernel in the source, with or without ``extern "C"``, or an instantiation: ``scale<float>``.
    options : tuple of str
        Options of NVRTC, e.g. ``("-std=c++17", "-DTILE=32", "--use_fast_math")``.
    file : str, optional
        Where the source came from; messages and profiles name it.
    enable_cooperative_groups : bool
        Whether launches are cooperative, which ``cooperative_groups::this_grid().sync()`` needs: all blocks are on the
        GPU at once.

    Raises
    ------
    CompileError
        If the arguments are not of these types. The source is compiled at the first launch.
    """

    language = "cuda"

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        *,
        file: str | None = None,
        backend: str = "nvrtc",
        enable_cooperative_groups: bool = False,
    ) -> None:
        if not isinstance(code, str) or not isinstance(name, str):
            raise CompileError(
                f"RawKernel takes the source and a name, both str, but {type(code)} and {type(name)} came."
            )
        if backend != "nvrtc":
            raise CompileError(f'RawKernel compiles with backend="nvrtc", but {backend!r} came.')
        self.code = self.source = code
        self.name, self.file = name, file
        self.enable_cooperative_groups = enable_cooperative_groups
        self.options = options if isinstance(options, str) else tuple(options)
        self._compiled: dict[tuple[int, int], PtxText] = {}

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        name: str,
        options: Sequence[str] = (),
        *,
        enable_cooperative_groups: bool = False,
    ) -> RawKernel:
        """A kernel of a ``.cu`` file; ``#include "…"`` is looked up beside it."""
        source, file = nvrtc.read_source(path), os.fspath(path)
        return cls(source, name, options, file=file, enable_cooperative_groups=enable_cooperative_groups)

    def compile(self, args: Sequence[Any] = (), compute_capability: tuple[int, int] | None = None) -> PtxText:
        """PTX of the kernel; the arguments do not matter. Default: for the current GPU."""
        if compute_capability is None:
            from gpulab.devices import current

            compute_capability = current().gpu.compute_capability
        if compute_capability not in self._compiled:
            self._compiled[compute_capability] = nvrtc.compile_kernel(
                self.code, self.name, self.options, compute_capability, self.file
            )
        return self._compiled[compute_capability]


class PtxKernel(_CallableKernel):
    """A kernel in PTX as it is.

    Parameters
    ----------
    text : str
        A PTX module.
    name : str, optional
        Name of the entry; not needed if there is only one.
    file : str, optional
        Where the text came from.

    Raises
    ------
    ArgumentError
        If the module has no such entry.
    """

    language = "ptx"

    def __init__(self, text: str, name: str | None = None, *, file: str | None = None) -> None:
        entries = ptx_source.entries(text)
        if name is None and len(entries) == 1:
            name = entries[0]
        if name not in entries:
            wanted = "several kernels; name one" if name is None else f'no kernel named "{name}"'
            shown = ", ".join(entries) or "none"
            raise ArgumentError(f"The PTX has {wanted if entries else 'no kernel (.entry) at all'}. It has: {shown}.")
        self.text = self.source = text
        self.name: str = name
        self.file = file
        self._compiled: dict[tuple[int, int], PtxText] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], name: str | None = None) -> PtxKernel:
        """A kernel of a ``.ptx`` file."""
        return cls(nvrtc.read_source(path), name, file=os.fspath(path))

    def compile(self, args: Sequence[Any] = (), compute_capability: tuple[int, int] | None = None) -> PtxText:
        """The PTX as it is. It must be for this compute capability or an older one."""
        if compute_capability is None:
            from gpulab.devices import current

            compute_capability = current().gpu.compute_capability
        if compute_capability not in self._compiled:
            self._compiled[compute_capability] = ptx_source.as_ptx_text(
                self.text, self.name, compute_capability, self.file
            )
        return self._compiled[compute_capability]
