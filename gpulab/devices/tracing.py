"""What is traced of a launch that is counted: which blocks are near, and how many lines there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.models.occupancy import occupancy
from gpulab.trace import Tracing, near_blocks

if TYPE_CHECKING:
    from gpulab.emulator import Program
    from gpulab.emulator.sampling import Sample


def tracing_of(gpu: Gpu, config: LaunchConfig, program: Program, lines: int, sample: Sample | None) -> Tracing:
    """What to trace of a launch.

    Of a sample, it is the stretch in the middle, as if it filled a GPU with fewer multiprocessors.

    Parameters
    ----------
    gpu : Gpu
    config : LaunchConfig
    program : Program
    lines : int
        Lines of all arrays of the launch.
    sample : Sample or None
        Of a sampled launch.
    """
    # Registers are left out, for the assembler takes longer than most launches: at worst some more blocks are near.
    per_sm = occupancy(
        gpu,
        block=config.threads_per_block,
        registers_per_thread=None,
        shared_bytes=program.shared_bytes(config.dynamic_shared_bytes),
    ).blocks_per_sm
    if sample is None:
        return Tracing(near_blocks(range(config.blocks), gpu.sm_count, per_sm), lines)
    return Tracing(near_blocks(sample.middle, max(1, round(len(sample.middle) / per_sm)), per_sm), lines)
