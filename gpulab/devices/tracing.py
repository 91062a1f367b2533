"""What is traced of a launch that is counted: which blocks are near, and how many lines there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.models.occupancy import occupancy
from gpulab.trace import Tracing, near_blocks

if TYPE_CHECKING:
    from gpulab.emulator import Program


def tracing_of(gpu: Gpu, config: LaunchConfig, program: Program, lines: int) -> Tracing:
    """What to trace of a launch whose arrays have so many lines together."""
    return Tracing(near_blocks(range(config.blocks), gpu.sm_count, blocks_per_sm(gpu, config, program)), lines)


def blocks_per_sm(gpu: Gpu, config: LaunchConfig, program: Program) -> int:
    """How many blocks an SM holds at once, if registers allow it.

    To know the registers, the assembler takes longer than most launches: at worst some more blocks are near.
    """
    return occupancy(
        gpu,
        block=config.threads_per_block,
        registers_per_thread=None,
        shared_bytes=program.shared_bytes(config.dynamic_shared_bytes),
    ).blocks_per_sm
