"""A check run on the emulated GPU: from the launch to what a reader is told."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpulab.devices import limits
from gpulab.devices.protocol import Bound
from gpulab.emulator import Memory, Program, RunOptions
from gpulab.errors import Fault, KernelException, LaunchError
from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.launchables.base import RefusedLaunch
from gpulab.toolchain.records import PtxText

Prepared = tuple[Program, LaunchConfig, bytes, Memory, dict[str, int]]
"""What an engine takes, less the options."""

_NUMBA_SHARED = re.compile(r"^\s*(\w+)\s*=\s*(?:\w+\s*\.\s*)*shared\s*\.\s*array\s*\(", re.MULTILINE)
_NUMBA_NAMES = re.compile(r"_cudapy_smem_(\d+)")


@dataclass(frozen=True, eq=False)
class CheckRecord:
    """What a check run found.

    Attributes
    ----------
    name, language : str
        Of the kernel.
    config : LaunchConfig or None
        None if it is none that a GPU could have.
    gpu : Gpu
    ptx : PtxText or None
        What ran; None if the launch was refused.
    faults : tuple of Fault
        In the order in which they were met.
    notes : tuple of str
        What the check could not decide, or did not do.
    """

    name: str
    language: str
    config: LaunchConfig | None
    gpu: Gpu
    ptx: PtxText | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


def run(gpu: Gpu, ptx: PtxText, launch: Prepared, options: RunOptions) -> CheckRecord:
    """Run a prepared launch under the check."""
    # The check brings LLVM, as the compiled engine does.
    from gpulab.emulator.checking.places import Places
    from gpulab.emulator.checking.run import check
    from gpulab.emulator.checking.words import say

    program, config, _, memory, symbols = launch
    result = check(*launch, options)
    said = say(result, Places(program, config, memory, _shared_names(ptx, program)), ptx.language)
    faults = list(said.faults)
    if ptx.exceptions:
        try:
            limits.raise_recorded(ptx, memory, symbols)
        except KernelException as error:
            faults.append(Fault("assert", str(error), ptx.file))
    return CheckRecord(ptx.name, ptx.language, config, gpu, ptx, tuple(faults), said.notes)


def refused(gpu: Gpu, bound: Bound, error: LaunchError) -> CheckRecord:
    """The record of a launch that the GPU would not accept: the kernel never runs, and nothing says so but the status."""
    told = f"The launch is dropped, and the kernel does not run: {error}"
    config = None if isinstance(bound, RefusedLaunch) else bound.config
    return CheckRecord(bound.kernel.name, bound.kernel.language, config, gpu, None, (Fault("launch", told),))


def _shared_names(ptx: PtxText, program: Program) -> dict[str, str]:
    """Numba numbers its shared arrays; their names stand in the source, in the same order."""
    made = sorted(
        (name for name in program.shared if _NUMBA_NAMES.fullmatch(name)), key=lambda n: int(n.split("_")[-1])
    )
    written = _NUMBA_SHARED.findall(ptx.source or "")
    return dict(zip(made, written, strict=True)) if len(made) == len(written) else {}
