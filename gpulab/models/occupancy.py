"""Theoretical occupancy: how many blocks fit on an SM at once, and which resource stops the next one.

The integer arithmetic is that of NVIDIA's ``cuda_occupancy.h`` (CUDA 12.6) with the largest shared memory
configuration.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from dataclasses import dataclass

from gpulab.errors import LaunchError
from gpulab.gpus import Gpu
from gpulab.gpus import gpu as find_gpu
from gpulab.launch import WARP_SIZE, as_dim3


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Result of `occupancy`.

    Attributes
    ----------
    theoretical : float
        Resident warps divided by the most that an SM holds, 0 to 1.
    blocks_per_sm : int
        Blocks that fit on an SM at once.
    active_warps_per_sm : int
        Warps of these blocks.
    limited_by : str
        The resource that stops the next block: ``warps``, ``registers``, ``shared`` or ``blocks``.
    limits : dict of str to int
        Blocks per SM that each resource allows. One that is not used allows as many as an SM holds.
    max_warps_per_sm : int
        The most warps that an SM holds.
    """

    theoretical: float
    blocks_per_sm: int
    active_warps_per_sm: int
    limited_by: str
    limits: dict[str, int]
    max_warps_per_sm: int


def occupancy(
    gpu: str | os.PathLike[str] | Gpu,
    *,
    block: int | Iterable[int],
    registers_per_thread: int | None,
    shared_bytes: int = 0,
) -> Occupancy:
    """Theoretical occupancy of a kernel on a GPU.

    Parameters
    ----------
    gpu : str, path or Gpu
    block : int or tuple of int
        Threads per block, or the block as (x, y, z).
    registers_per_thread : int or None
        As ptxas reports it; None if unknown, which then limits nothing.
    shared_bytes : int
        Static plus dynamic shared memory of a block, in bytes.

    Raises
    ------
    LaunchError
        If the GPU could not hold a single block: the message names the limit.

    Examples
    --------
    >>> result = occupancy("A100", block=1024, registers_per_thread=40)
    >>> result.theoretical, result.blocks_per_sm, result.limited_by
    (0.5, 1, 'registers')
    """
    spec = find_gpu(gpu)
    threads = _threads(block, spec)
    shared = _whole("shared_bytes", shared_bytes)
    warps = -(-threads // WARP_SIZE)
    limits = {
        "warps": spec.max_warps_per_sm // warps,
        "registers": _blocks_by_registers(spec, threads, warps, registers_per_thread),
        "shared": _blocks_by_shared(spec, shared),
        "blocks": spec.max_blocks_per_sm,
    }
    limited_by = min(limits, key=lambda name: limits[name])
    blocks = limits[limited_by]
    return Occupancy(
        blocks * warps / spec.max_warps_per_sm, blocks, blocks * warps, limited_by, limits, spec.max_warps_per_sm
    )


def _threads(block: int | Iterable[int], spec: Gpu) -> int:
    x, y, z = as_dim3(block, "block")
    threads = x * y * z
    if min(x, y, z) < 1:
        raise LaunchError(f"A block must have at least 1 thread, but block={block!r} came.")
    if threads > spec.max_threads_per_block:
        raise LaunchError(
            f"A block may have at most {spec.max_threads_per_block:,} threads, but block={block!r} has {threads:,}. "
            f"Use smaller blocks and more of them."
        )
    return threads


def _whole(what: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise LaunchError(f"{what} must be an int, but {value!r} came.") from None
    if number < 0:
        raise LaunchError(f"{what} must be 0 or more, but {number} came.")
    return number


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _blocks_by_registers(spec: Gpu, threads: int, warps: int, registers: int | None) -> int:
    if registers is None or _whole("registers_per_thread", registers) == 0:
        return spec.max_blocks_per_sm
    if registers > spec.max_registers_per_thread:
        raise LaunchError(
            f"A thread may use at most {spec.max_registers_per_thread} registers, but "
            f"registers_per_thread={registers}. The compiler would spill the rest to local memory."
        )
    per_warp = _round_up(registers * WARP_SIZE, spec.register_allocation_unit)
    parts = spec.warp_allocation_granularity
    if _round_up(warps, parts) * per_warp > spec.registers_per_sm:
        most = _most_registers(spec, warps)
        raise LaunchError(
            f"A block of {threads:,} threads on {spec.name} may use at most {most} registers per thread "
            f"({spec.registers_per_sm:,} in a block), but registers_per_thread={registers}. Use a smaller block, or "
            f"limit the registers (max_registers= in Numba, __launch_bounds__ in CUDA C++)."
        )
    # Each sub-partition has its own registers, so what is left over in one can't help a warp of another.
    return spec.registers_per_sm // parts // per_warp * parts // warps


def _most_registers(spec: Gpu, warps: int) -> int:
    per_warp = spec.registers_per_sm // _round_up(warps, spec.warp_allocation_granularity)
    whole_units = per_warp // spec.register_allocation_unit * spec.register_allocation_unit
    return min(whole_units // WARP_SIZE, spec.max_registers_per_thread)


def _blocks_by_shared(spec: Gpu, shared_bytes: int) -> int:
    if shared_bytes > spec.shared_bytes_per_block_optin:
        raise LaunchError(
            f"A block on {spec.name} may use at most {spec.shared_bytes_per_block_optin:,} bytes of shared memory "
            f"({spec.shared_bytes_per_block:,} without opting in), but shared_bytes={shared_bytes:,}. "
            f"Use a smaller tile."
        )
    taken = _round_up(shared_bytes + spec.reserved_shared_bytes_per_block, spec.shared_allocation_bytes)
    return spec.shared_bytes_per_sm // taken if taken else spec.max_blocks_per_sm
