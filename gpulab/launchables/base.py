"""What all kernels share: ``kernel[grid, block]`` and the launch itself."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.errors import LaunchError
from gpulab.launch import LaunchConfig
from gpulab.toolchain.records import PtxText


class ArgumentHint:
    """A host array with a word on which way its data goes: `In`, `Out`, `InOut`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def for_launch(self) -> Any:
        """What the launch gets."""
        return self.value


class In(ArgumentHint):
    """An input: the kernel gets a copy, and the array stays as it is."""

    def for_launch(self) -> Any:
        """A copy of a NumPy array, which the launch may change."""
        return self.value.copy() if isinstance(self.value, np.ndarray) else self.value


class Out(ArgumentHint):
    """An output: what the array held before is of no use to the kernel."""


class InOut(ArgumentHint):
    """Input and output, as an array without a hint."""


class Launchable(ABC):
    """A kernel that can be launched.

    Attributes
    ----------
    name : str
        The user's name of it.
    language : str
        ``numba``, ``cuda`` or ``ptx``.
    source : str or None
        Its source text, where known.
    enable_cooperative_groups : bool or None
        Whether launches are cooperative: all blocks are on the GPU at once and may wait for each other. None if the
        kernel's code tells.
    """

    name: str
    language: str
    source: str | None
    enable_cooperative_groups: bool | None = None
    _max_dynamic_shared: int | None = None

    @abstractmethod
    def compile(self, args: Sequence[Any], compute_capability: tuple[int, int]) -> PtxText:
        """PTX of the kernel for arguments of these types.

        Raises
        ------
        CompileError
            If it does not compile.
        ArgumentError
            If it cannot take such arguments.
        """

    @property
    def max_dynamic_shared_size_bytes(self) -> int | None:
        """How much dynamic shared memory a block may get; more than 48 KiB in all must be asked for by setting this.

        None stands for what is allowed without asking.
        """
        return self._max_dynamic_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, value: int) -> None:
        try:
            count = operator.index(value)
        except TypeError:
            raise LaunchError(f"max_dynamic_shared_size_bytes must be an int, but {value!r} came.") from None
        if count < 0:
            raise LaunchError(f"max_dynamic_shared_size_bytes must be 0 or more, but {count} came.")
        self._max_dynamic_shared = count

    def __getitem__(self, configuration: Any) -> BoundLaunch:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"{self.name}[…] takes grid and block, and if needed stream and dynamic shared memory in bytes: "
                f"{self.name}[grid, block](…), but {self.name}[{configuration!r}] came."
            )
        grid, block, stream, shared = (*configuration, None, None)[:4] if len(configuration) < 4 else configuration
        try:
            return BoundLaunch(self, LaunchConfig.of(grid, block, shared or 0), stream)
        except LaunchError as error:
            return RefusedLaunch(self, error)

    def __call__(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch in CuPy's form: ``kernel(grid, block, args)``; ``kernel[grid, block](*args)`` is the same.

        Parameters
        ----------
        grid, block : int or tuple of int
        args : tuple or list
            The kernel's arguments.
        shared_mem : int
            Dynamic shared memory per block, bytes.

        Raises
        ------
        GpulabError
            `CompileError`, `ArgumentError`, `LaunchError`, `KernelFault` or `TimeLimitError`.
        """
        BoundLaunch(self, LaunchConfig.of(grid, block, shared_mem), stream)(*args)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


@dataclass(frozen=True, eq=False)
class BoundLaunch:
    """A kernel with its launch configuration; call it with the kernel's arguments to run it on the current GPU.

    Attributes
    ----------
    kernel : Launchable
    config : LaunchConfig
    stream : object
        Of the launch; None or 0 for the default one.
    """

    kernel: Launchable
    config: LaunchConfig
    stream: Any = None

    def __call__(self, *args: Any) -> None:
        """Run the kernel and return when it has finished; NumPy arrays hold the results.

        Raises
        ------
        GpulabError
            `CompileError`, `ArgumentError`, `LaunchError`, `KernelFault` or `TimeLimitError`.
        """
        from gpulab.devices import current

        current().launch(self, plain_arguments(args))

    def __repr__(self) -> str:
        grid, block = self.config.grid, self.config.block
        return f"<{self.kernel.name}[{grid}, {block}]>"


class RefusedLaunch(BoundLaunch):
    """A launch that no GPU would accept. Whoever asks for its configuration gets the error; `gpulab.check` reports it."""

    def __init__(self, kernel: Launchable, error: LaunchError) -> None:
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "error", error)

    @property
    def config(self) -> LaunchConfig:  # type: ignore[override]
        """Raises the error: there is no valid configuration."""
        raise self.error

    def __call__(self, *args: Any) -> None:
        """Raises the error."""
        raise self.error

    def __repr__(self) -> str:
        return f"<{self.kernel.name}[refused]>"


def is_cupys_form(args: Sequence[Any]) -> bool:
    """Whether the arguments of a call are grid, block and a tuple of the kernel's arguments."""
    return len(args) == 3 and isinstance(args[2], (tuple, list)) and all(map(_is_dims, args[:2]))


def _is_dims(value: Any) -> bool:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return all(isinstance(part, (int, np.integer)) for part in parts)


def plain_arguments(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with `In`, `Out` and `InOut` taken off."""
    return tuple(value.for_launch() if isinstance(value, ArgumentHint) else value for value in args)
