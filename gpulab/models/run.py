"""`KernelRun`: everything that the models need to know of one launch, whatever device it ran on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpulab.counters import Counters
from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.models.occupancy import Occupancy, resident
from gpulab.models.tally import FormLike, Tally
from gpulab.ptx.syntax import Function


class BlockLike(Protocol):
    """A basic block of the flow graph (see `gpulab.ptx.cfg`): instructions ``start`` to ``stop``, in rank order."""

    @property
    def rank(self) -> int: ...

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...

    @property
    def successors(self) -> tuple[int, ...]: ...


class GraphLike(Protocol):
    """The flow graph of a kernel (see `gpulab.ptx.cfg`)."""

    @property
    def blocks(self) -> tuple[BlockLike, ...]: ...


class ProgramLike(Protocol):
    """The static side of a kernel (see `gpulab.emulator.program`)."""

    @property
    def function(self) -> Function: ...

    @property
    def forms(self) -> Sequence[FormLike]: ...

    @property
    def graph(self) -> GraphLike: ...


@dataclass(frozen=True)
class KernelRun:
    """One launch as the models see it.

    Attributes
    ----------
    program : Program
    counters : Counters
    config : LaunchConfig
    registers_per_thread : int or None
        As ptxas reports it; None if unknown.
    static_shared_bytes : int
    local_bytes : int or None
        Stack of a thread after ptxas, spills included; None if unknown.
    """

    program: ProgramLike
    counters: Counters
    config: LaunchConfig
    registers_per_thread: int | None = None
    static_shared_bytes: int = 0
    local_bytes: int | None = None

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of a block."""
        return self.static_shared_bytes + self.config.dynamic_shared_bytes

    def tally(self) -> Tally:
        """The counters of the whole grid, ready to be summed."""
        return Tally(self.program.forms, self.counters)

    def occupancy(self, gpu: Gpu) -> Occupancy:
        """Theoretical occupancy of this launch on a GPU.

        Raises
        ------
        LaunchError
            If the GPU could not hold a single block.
        """
        return resident(
            gpu,
            block=self.config.threads_per_block,
            registers_per_thread=self.registers_per_thread,
            shared_bytes=self.shared_bytes,
        )
