"""What a GPU accepts as a launch, beyond the limits that hold for all: shared memory, registers, declared bounds."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gpulab.errors import KernelException, LaunchError
from gpulab.launch import LaunchConfig
from gpulab.models.occupancy import registers_of_a_block
from gpulab.toolchain.records import PtxText

if TYPE_CHECKING:
    from gpulab.devices.protocol import Kernel
    from gpulab.emulator import Memory, Program
    from gpulab.gpus import Gpu

_KIB = 1024
_REGISTERS_AT_MOST = 255  # per thread, on every GPU


def check(gpu: Gpu, kernel: Kernel, config: LaunchConfig, ptx: PtxText, program: Program) -> None:
    """Raise a `LaunchError` if the GPU would refuse the launch, with what to do about it."""
    _check_shared(gpu, kernel, config, program.static_shared_bytes)
    _check_bounds(kernel, config, program.function.directives)
    # No kernel can fail here with a small block; the assembler needs to be asked for large ones only.
    if registers_of_a_block(gpu, config.warps_per_block, _REGISTERS_AT_MOST) > gpu.registers_per_sm:
        _check_registers(gpu, kernel, config, ptx)


def _check_shared(gpu: Gpu, kernel: Kernel, config: LaunchConfig, static: int) -> None:
    usual, most = gpu.shared_bytes_per_block, gpu.shared_bytes_per_block_optin
    dynamic, opted = config.dynamic_shared_bytes, kernel.max_dynamic_shared_size_bytes
    if static > usual:
        raise LaunchError(
            f"{kernel.name} declares {static:,} bytes of shared memory, but at most {usual:,} can be static. "
            "Use dynamic shared memory for more."
        )
    if static + dynamic > most:
        raise LaunchError(
            f"{kernel.name} asks for {_shown(static, dynamic)} of shared memory per block, but the {gpu.name} has "
            f"at most {most:,} bytes ({most // _KIB} KiB) for a block. Use smaller tiles."
        )
    if dynamic > (usual - static if opted is None else opted):
        raise LaunchError(
            f"{kernel.name} asks for {_shown(static, dynamic)} of shared memory per block. More than "
            f"{usual:,} bytes ({usual // _KIB} KiB) must be asked for before the launch: "
            f"{kernel.name}.max_dynamic_shared_size_bytes = {dynamic}"
        )


def _shown(static: int, dynamic: int) -> str:
    return f"{static + dynamic:,} bytes ({static:,} static + {dynamic:,} dynamic)" if static else f"{dynamic:,} bytes"


def _check_bounds(kernel: Kernel, config: LaunchConfig, directives: dict[str, tuple[int, ...]]) -> None:
    bounds = directives.get("maxntid")
    if bounds:
        most = 1
        for length in bounds:
            most *= length
        if config.threads_per_block > most:
            raise LaunchError(
                f"{kernel.name} was compiled for at most {most:,} threads per block (launch bounds), but the block has "
                f"{config.threads_per_block:,}. Launch smaller blocks or raise the bound."
            )
    required = directives.get("reqntid")
    if required and config.block != (*required, 1, 1, 1)[:3]:
        raise LaunchError(
            f"{kernel.name} must be launched with block={tuple(required)}, but block={config.block} came."
        )


def _check_registers(gpu: Gpu, kernel: Kernel, config: LaunchConfig, ptx: PtxText) -> None:
    registers = ptx.assembled.registers_per_thread
    if registers is None:
        return
    needed = registers_of_a_block(gpu, config.warps_per_block, registers)
    if needed > gpu.registers_per_sm:
        raise LaunchError(
            f"{kernel.name} needs {registers} registers per thread, so a block of {config.threads_per_block:,} threads "
            f"needs {needed:,}, but an SM of the {gpu.name} has {gpu.registers_per_sm:,}. Launch smaller blocks, or "
            "limit the registers (max_registers or launch_bounds of cuda.jit, __launch_bounds__ in C++)."
        )


def raise_recorded(ptx: PtxText, memory: Memory, symbols: dict[str, int]) -> None:
    """Raise the Python exception that a kernel compiled with ``debug=True`` recorded, if it did, and forget it."""
    code_at = symbols.get(f"{ptx.kernel}__errcode__")
    if code_at is None:
        return
    code = _word(memory, code_at)
    if code == 0:
        return
    memory.view(code_at, 4)[:] = 0
    block, thread = (
        tuple(_word(memory, symbols[f"{ptx.kernel}__{what}{axis}__"]) for axis in "xyz") for what in ("ctaid", "tid")
    )
    told = dict(ptx.exceptions).get(code, f"exception number {code}")
    raise KernelException(f"{ptx.name} raised {told} in block {block}, thread {thread}.")


def _word(memory: Memory, address: int) -> int:
    return struct.unpack("<i", memory.view(address, 4).tobytes())[0]
