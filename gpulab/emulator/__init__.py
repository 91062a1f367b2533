"""The emulator: a `Program` and a launch to results in memory and `Counters`.

Two engines execute programs. The interpreter (`reference`) defines what PTX means, plainly and slowly; the compiled
engine equals it bit for bit, counters included, and is the one that launches use. ``GPULAB_ENGINE=reference`` picks the
interpreter instead.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable

from gpulab.counters import Counters
from gpulab.emulator.memory import Allocation, Memory
from gpulab.emulator.program import Program, RunOptions, load, place_variables
from gpulab.errors import GpulabError
from gpulab.launch import LaunchConfig

Engine = Callable[..., Counters]


def _engine(module: str) -> Engine:
    def run(
        program: Program,
        launch: LaunchConfig,
        parameters: bytes,
        memory: Memory,
        symbols: dict[str, int],
        options: RunOptions = RunOptions(),  # noqa: B008 (frozen, so it can be shared)
    ) -> Counters:
        # An engine is loaded when it is first used: the compiled one brings LLVM.
        return importlib.import_module(module).execute(program, launch, parameters, memory, symbols, options)

    return run


ENGINES: dict[str, Engine] = {
    "reference": _engine("gpulab.emulator.reference.interpreter"),
    "compiled": _engine("gpulab.emulator.compiled"),
}
"""The engines by name, for tests that hold them to each other."""


def execute(
    program: Program,
    launch: LaunchConfig,
    parameters: bytes,
    memory: Memory,
    symbols: dict[str, int],
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen, so it can be shared)
) -> Counters:
    """Run a kernel.

    Parameters
    ----------
    program : Program
    launch : LaunchConfig
    parameters : bytes
        The parameter buffer, laid out as `Program.parameters` says.
    memory : Memory
    symbols : dict of str to int
        Addresses of module variables, from `place_variables`.
    options : RunOptions

    Returns
    -------
    Counters

    Raises
    ------
    KernelFault
        At the first thing that the kernel does wrong.
    TimeLimitError
        If it runs longer than `options.time_limit_s`.
    """
    name = os.environ.get("GPULAB_ENGINE", "compiled")
    if name not in ENGINES:
        raise GpulabError(f"GPULAB_ENGINE must be one of {', '.join(ENGINES)}, but {name!r} came.")
    return ENGINES[name](program, launch, parameters, memory, symbols, options)


__all__ = [
    "ENGINES",
    "Allocation",
    "Engine",
    "Memory",
    "Program",
    "RunOptions",
    "execute",
    "load",
    "place_variables",
]
