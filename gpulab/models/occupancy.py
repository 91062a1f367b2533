"""Theoretical occupancy: how many blocks fit on an SM at once, and which resource stops the next one.

The integer arithmetic is that of NVIDIA's ``cuda_occupancy.h`` (CUDA 12.9) with the largest shared memory
configuration. The tests run that header on the emulated GPU and compare.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from dataclasses import dataclass

from gpulab.errors import ArgumentError, LaunchError
from gpulab.gpus import Gpu
from gpulab.gpus import gpu as find_gpu
from gpulab.launch import WARP_SIZE, as_dim3

#: Block barriers limit occupancy from this compute capability on.
_COUNTS_BARRIERS = (9, 0)
_BARRIERS_OF_A_BLOCK = 16
_REGISTER_STEP, _SHARED_STEP = 8, 4096
#: Values of a `Gpu` on which the result depends.
_DEPENDS_ON = (
    "max_warps_per_sm",
    "max_blocks_per_sm",
    "max_threads_per_block",
    "registers_per_sm",
    "max_registers_per_thread",
    "register_allocation_unit",
    "warp_allocation_granularity",
    "shared_bytes_per_sm",
    "shared_bytes_per_block_optin",
    "reserved_shared_bytes_per_block",
    "shared_allocation_bytes",
)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Result of `occupancy`.

    Attributes
    ----------
    theoretical : float
        Resident warps divided by the most that an SM holds, 0 to 1.
    blocks_per_sm : int
        Blocks that fit on an SM at once; 0 if not even one does, so that the kernel can't be launched.
    active_warps_per_sm : int
        Warps of these blocks.
    limited_by : str
        The resource that stops the next block: ``warps``, ``registers``, ``shared``, ``blocks`` or ``barriers``.
    limits : dict of str to int
        Blocks per SM that each resource allows. One that is not used allows as many as an SM holds. ``barriers`` is
        there only if they were given and the GPU counts them.
    max_warps_per_sm : int
        The most warps that an SM holds.
    reason : str
        Why no block fits, and what to do; empty if one does.
    note : str
        What the result rests on that is not certain; empty if nothing.
    """

    theoretical: float
    blocks_per_sm: int
    active_warps_per_sm: int
    limited_by: str
    limits: dict[str, int]
    max_warps_per_sm: int
    reason: str = ""
    note: str = ""


def occupancy(
    gpu: str | os.PathLike[str] | Gpu,
    *,
    block: int | Iterable[int],
    registers_per_thread: int | None,
    shared_bytes: int = 0,
    barriers: int = 0,
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
    barriers : int
        Barriers that a block uses, at most 16: 1 more than the largest number in ``bar.sync``. They limit occupancy
        from compute capability 9.0 on; 0 if they are not to count.

    Returns
    -------
    Occupancy
        With 0 blocks and the reason if the GPU could not hold a single one.

    Raises
    ------
    LaunchError
        If a value is none that any kernel could have, such as a block of 0 threads.

    Examples
    --------
    >>> result = occupancy("A100", block=1024, registers_per_thread=40)
    >>> result.theoretical, result.blocks_per_sm, result.limited_by
    (0.5, 1, 'registers')
    >>> occupancy("A100", block=1024, registers_per_thread=128).blocks_per_sm
    0
    """
    threads = _threads(block)
    registers = None if registers_per_thread is None else _whole("registers_per_thread", registers_per_thread)
    return _occupancy(
        find_gpu(gpu), threads, registers, _whole("shared_bytes", shared_bytes), _whole("barriers", barriers)
    )


def resident(gpu: Gpu, *, block: int, registers_per_thread: int | None, shared_bytes: int) -> Occupancy:
    """The occupancy of a kernel that is launched.

    Raises
    ------
    LaunchError
        If the GPU could not hold a single block: the message names the limit.
    """
    held = occupancy(gpu, block=block, registers_per_thread=registers_per_thread, shared_bytes=shared_bytes)
    if held.blocks_per_sm == 0:
        raise LaunchError(held.reason)
    return held


def occupancy_curve(
    gpu: str | os.PathLike[str] | Gpu,
    over: str = "block",
    *,
    block: int | Iterable[int] = 256,
    registers_per_thread: int | None = None,
    shared_bytes: int = 0,
    barriers: int = 0,
) -> dict[int, Occupancy]:
    """How occupancy changes with one of its three causes while the others stay: Nsight Compute's three graphs.

    Parameters
    ----------
    gpu : str, path or Gpu
    over : str
        ``"block"``: every block of whole warps; ``"registers"``: per thread, in steps of 8, which are the steps in
        which they are given out; ``"shared"``: bytes of a block, in steps of 4 KiB up to the most that it can have.
    block, registers_per_thread, shared_bytes, barriers
        As in `occupancy`; the one that `over` names is not used.

    Returns
    -------
    dict of int to Occupancy
        By threads per block, registers per thread or bytes; points that can't be launched have 0 blocks.

    Raises
    ------
    ArgumentError
        If there is no such curve.
    LaunchError
        As `occupancy`.
    """
    spec = find_gpu(gpu)
    threads = _threads(block)
    registers = None if registers_per_thread is None else _whole("registers_per_thread", registers_per_thread)
    shared, bars = _whole("shared_bytes", shared_bytes), _whole("barriers", barriers)
    if over == "block":
        sizes = range(WARP_SIZE, spec.max_threads_per_block + 1, WARP_SIZE)
        return {size: _occupancy(spec, size, registers, shared, bars) for size in sizes}
    if over == "registers":
        counts = (*range(_REGISTER_STEP, spec.max_registers_per_thread, _REGISTER_STEP), spec.max_registers_per_thread)
        return {count: _occupancy(spec, threads, count, shared, bars) for count in counts}
    if over == "shared":
        most = spec.shared_bytes_per_block_optin
        return {
            size: _occupancy(spec, threads, registers, size, bars) for size in (*range(0, most, _SHARED_STEP), most)
        }
    raise ArgumentError(f"A curve of occupancy goes over 'block', 'registers' or 'shared', but {over!r} came.")


def _occupancy(spec: Gpu, threads: int, registers: int | None, shared: int, barriers: int) -> Occupancy:
    warps = -(-threads // WARP_SIZE)
    reasons = list(filter(None, _reasons(spec, threads, warps, registers, shared, barriers)))
    limits = {
        "warps": spec.max_warps_per_sm // warps if threads <= spec.max_threads_per_block else 0,
        "registers": _blocks_by_registers(spec, warps, registers),
        "shared": _blocks_by_shared(spec, shared),
        "blocks": spec.max_blocks_per_sm,
    }
    if barriers and spec.compute_capability >= _COUNTS_BARRIERS:
        limits["barriers"] = spec.barriers_per_sm // barriers if barriers <= _BARRIERS_OF_A_BLOCK else 0
    limited_by = min(limits, key=lambda name: limits[name])
    blocks = 0 if reasons else limits[limited_by]
    return Occupancy(
        blocks * warps / spec.max_warps_per_sm,
        blocks,
        blocks * warps,
        limited_by,
        limits,
        spec.max_warps_per_sm,
        reasons[0] if reasons else "",
        _note(spec, registers),
    )


def registers_of_a_block(gpu: Gpu, warps: int, registers_per_thread: int) -> int:
    """Registers that the hardware asks for before it takes a block: as if its warps were on all sub-partitions alike."""
    return _round_up(warps, gpu.warp_allocation_granularity) * _registers_of_a_warp(gpu, registers_per_thread)


def _threads(block: int | Iterable[int]) -> int:
    x, y, z = as_dim3(block, "block")
    if min(x, y, z) < 1:
        raise LaunchError(f"A block must have at least 1 thread, but block={block!r} came.")
    return x * y * z


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


def _registers_of_a_warp(spec: Gpu, registers: int) -> int:
    return _round_up(registers * WARP_SIZE, spec.register_allocation_unit)


def _blocks_by_registers(spec: Gpu, warps: int, registers: int | None) -> int:
    if not registers:
        return spec.max_blocks_per_sm
    if (
        registers > spec.max_registers_per_thread
        or registers_of_a_block(spec, warps, registers) > spec.registers_per_sm
    ):
        return 0
    parts, per_warp = spec.warp_allocation_granularity, _registers_of_a_warp(spec, registers)
    # Each sub-partition has its own registers, so what is left over in one can't help a warp of another.
    return spec.registers_per_sm // parts // per_warp * parts // warps


def _blocks_by_shared(spec: Gpu, shared: int) -> int:
    if shared > spec.shared_bytes_per_block_optin:
        return 0
    taken = _round_up(shared + spec.reserved_shared_bytes_per_block, spec.shared_allocation_bytes)
    return spec.shared_bytes_per_sm // taken if taken else spec.max_blocks_per_sm


def _reasons(
    spec: Gpu, threads: int, warps: int, registers: int | None, shared: int, barriers: int
) -> Iterable[str | None]:
    """Why a single block does not fit, for each resource that is too small for it."""
    if threads > spec.max_threads_per_block:
        yield (
            f"A block may have at most {spec.max_threads_per_block:,} threads, but this one has {threads:,}. "
            f"Use smaller blocks and more of them."
        )
    elif warps > spec.max_warps_per_sm:
        yield f"An SM of {spec.name} holds {spec.max_warps_per_sm} warps, but a block has {warps}. Use smaller blocks."
    yield _too_many_registers(spec, threads, warps, registers or 0)
    if _blocks_by_shared(spec, shared) == 0:
        yield (
            f"A block on {spec.name} may use at most {spec.shared_bytes_per_block_optin:,} bytes of shared memory "
            f"({spec.shared_bytes_per_block:,} without opting in), but shared_bytes={shared:,}. Use a smaller tile."
        )
    if barriers > _BARRIERS_OF_A_BLOCK:
        yield f"A block has {_BARRIERS_OF_A_BLOCK} barriers, but barriers={barriers}. Use barrier numbers again."


def _too_many_registers(spec: Gpu, threads: int, warps: int, registers: int) -> str | None:
    if registers > spec.max_registers_per_thread:
        return (
            f"A thread may use at most {spec.max_registers_per_thread} registers, but "
            f"registers_per_thread={registers}. The compiler would spill the rest to local memory."
        )
    if threads <= spec.max_threads_per_block and _blocks_by_registers(spec, warps, registers) == 0:
        return (
            f"A block of {threads:,} threads on {spec.name} may use at most {_most_registers(spec, warps)} registers per "
            f"thread ({spec.registers_per_sm:,} in a block), but registers_per_thread={registers}. Use a smaller block, "
            f"or limit the registers (max_registers= in Numba, __launch_bounds__ in CUDA C++)."
        )
    return None


def _most_registers(spec: Gpu, warps: int) -> int:
    per_warp = spec.registers_per_sm // _round_up(warps, spec.warp_allocation_granularity)
    whole_units = per_warp // spec.register_allocation_unit * spec.register_allocation_unit
    return min(whole_units // WARP_SIZE, spec.max_registers_per_thread)


def _note(spec: Gpu, registers: int | None) -> str:
    """What of the result is uncertain: registers that nobody told, values of the GPU whose source is in doubt."""
    notes = ["The registers are not known and do not count."] if registers is None else []
    for name in _DEPENDS_ON:
        source = spec.sources.get(name, "")
        if "(doubtful: " in source or source.startswith(("replaced", "follows")):
            notes.append(f"{name} is {getattr(spec, name):,}: {source}.")
    return " ".join(notes)
