"""The launch configuration: grid, block, dynamic shared memory, checked once and for every kind of kernel."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass

from gpulab.errors import LaunchError

Dim3 = tuple[int, int, int]

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
WARP_SIZE = 32


def as_dim3(value: int | Iterable[int], what: str) -> Dim3:
    """Return `value` (an int or one to three ints) as ``(x, y, z)``; missing dimensions are 1.

    Raises
    ------
    LaunchError
        If it is not made of one to three integers.
    """
    parts = tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else (value,)
    try:
        dims = tuple(operator.index(part) for part in parts)
    except TypeError:
        raise LaunchError(
            f"{what} must be an int or a tuple of one to three ints, but {value!r} came. "
            f"A common cause is `/` where `//` is meant: n / 256 is a float."
        ) from None
    if not 1 <= len(dims) <= 3:
        raise LaunchError(f"{what} must have one to three dimensions, but {value!r} has {len(dims)}.")
    return dims + (1,) * (3 - len(dims))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """Grid and block, both ordered x, y, z, and the dynamic shared memory in bytes.

    Make one with `LaunchConfig.of`, which checks the limits that hold for every CUDA GPU (compute capability 7.0 to
    12.0); limits that depend on the kernel or the GPU are checked at the launch.
    """

    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0

    @classmethod
    def of(cls, grid: int | Iterable[int], block: int | Iterable[int], dynamic_shared_bytes: int = 0) -> LaunchConfig:
        """Check and normalize a launch as a user writes it.

        Raises
        ------
        LaunchError
            If a dimension is zero, negative or above the limit, or the block has more than 1,024 threads.
        """
        config = cls(as_dim3(grid, "grid"), as_dim3(block, "block"), _as_bytes(dynamic_shared_bytes))
        # First, since it is the limit that beginners meet: block=2048 breaks the limit of its axis as well.
        if config.threads_per_block > MAX_THREADS_PER_BLOCK and min(config.block) > 0:
            raise LaunchError(
                f"A block may have at most {MAX_THREADS_PER_BLOCK:,} threads, but block={_shown(config.block)} has "
                f"{config.threads_per_block:,}. Use smaller blocks and more of them: "
                f"grid = (n + block - 1) // block."
            )
        _check_axis_limits("grid", "blocks", config.grid, MAX_GRID)
        _check_axis_limits("block", "threads", config.block, MAX_BLOCK)
        return config

    @property
    def blocks(self) -> int:
        """Number of blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        """Number of threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Number of warps in a block; the last one may be partly filled."""
        return -(-self.threads_per_block // WARP_SIZE)


def _as_bytes(value: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise LaunchError(f"dynamic_shared_bytes must be an int, but {value!r} came.") from None
    if count < 0:
        raise LaunchError(f"dynamic_shared_bytes must be 0 or more, but {count} came.")
    return count


def _check_axis_limits(what: str, unit: str, dims: Dim3, limits: Dim3) -> None:
    for axis, size, limit in zip("xyz", dims, limits, strict=True):
        if not 1 <= size <= limit:
            hint = "Is the problem size 0? Skip the launch then." if size == 0 else "Check how it is computed."
            raise LaunchError(f"{what}.{axis} must be 1 to {limit:,} {unit}, but {what}={_shown(dims)} came. {hint}")


def _shown(dims: Dim3) -> str:
    return str(dims[0]) if dims[1:] == (1, 1) else str(dims)
