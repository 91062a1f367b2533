"""Blocks of a grid that wait for each other: how many the GPU holds at once, and cooperative launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from gpulab.errors import KernelFault, LaunchError
from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.models.occupancy import resident
from gpulab.toolchain.records import PtxText

if TYPE_CHECKING:
    from gpulab.devices.protocol import Kernel
    from gpulab.emulator import Program, RunOptions

WORKSPACE_WORDS = 2
"""What the driver gives a cooperative launch: the size of the workspace, and the barrier of the grid (uint32)."""


def is_cooperative(kernel: Kernel, program: Program) -> bool:
    """Whether a launch of the kernel is a cooperative one: as it says, else if it has a barrier of the grid."""
    wanted = kernel.enable_cooperative_groups
    return program.reads_workspace if wanted is None else wanted


def blocks_in_flight(gpu: Gpu, config: LaunchConfig, ptx: PtxText, program: Program, cooperative: bool) -> int | None:
    """How many blocks the GPU holds at once; None where that does not matter.

    Raises
    ------
    LaunchError
        If the launch is cooperative and its grid does not fit.
    """
    if not cooperative and not (program.spins and program.order_sensitive):
        return None
    per_sm = resident(
        gpu,
        block=config.threads_per_block,
        registers_per_thread=ptx.assembled.registers_per_thread,
        shared_bytes=program.shared_bytes(config.dynamic_shared_bytes),
    ).blocks_per_sm
    most = per_sm * gpu.sm_count
    if cooperative and config.blocks > most:
        raise LaunchError(
            f"{ptx.name} is launched cooperatively, so that all blocks must be on the GPU at once, but the grid has "
            f"{config.blocks:,} blocks and the {gpu.name} holds {most:,} ({gpu.sm_count} SMs with {per_sm} each). "
            "Launch fewer blocks and let each thread do more in a loop."
        )
    return most


def workspace() -> np.ndarray:
    """Zeroed memory for the barrier of the grid."""
    return np.zeros(WORKSPACE_WORDS, np.uint32)


def check_sample(ptx: PtxText, options: RunOptions, sampled: bool) -> None:
    """Raise a `LaunchError` if only some blocks of a cooperative launch are to run."""
    if sampled and options.workspace:
        raise LaunchError(
            f"{ptx.name} is launched cooperatively, and its blocks wait for each other: run all of them, without "
            "sample_blocks."
        )


@contextmanager
def explained(kernel: Kernel, program: Program, cooperative: bool) -> Iterator[None]:
    """Say what a barrier of the grid needs when a launch fails because it is not cooperative."""
    try:
        yield
    except KernelFault as error:
        if cooperative or not program.reads_workspace or error.fault.kind not in ("trap", "out-of-bounds"):
            raise
        raise LaunchError(
            f"{kernel.name} waits for the whole grid (this_grid().sync()), which only a cooperative launch can: make the "
            "kernel with RawKernel(…, enable_cooperative_groups=True). On a GPU such a launch fails as well."
        ) from error
