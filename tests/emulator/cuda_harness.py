"""Runs kernels of a CUDA C++ file on any engine, the general variant of the compiled one among them."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from gpulab.counters import Counters
from gpulab.emulator import ENGINES, Memory, Program, RunOptions, compiled, load, place_variables
from gpulab.launch import LaunchConfig
from gpulab.ptx import parse
from gpulab.toolchain.nvrtc import compile_kernel

VARIANTS = (*ENGINES, "general")


@functools.cache
def program_of(file: str, name: str, capability: tuple[int, int] = (8, 0)) -> Program:
    """A kernel of a file beside this one; `name` may be an instantiation."""
    source = (Path(__file__).parent / file).read_text()
    found = compile_kernel(source, name, (), capability)
    return load(parse(found.text), found.kernel)


def launch(
    program: Program, engine: str, arguments: list, grid: object, block: object, shared: int = 0
) -> tuple[list, Counters]:
    """Run a kernel on copies of its arrays; gives the copies and the counters."""
    memory, buffer = Memory(), b""
    symbols = place_variables(program.module, memory)
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    for (offset, size), argument in zip(program.parameters.values(), copies, strict=True):
        value = memory.adopt(argument, f"array {offset}").address if isinstance(argument, np.ndarray) else argument
        buffer = buffer.ljust(offset, b"\0") + int(value).to_bytes(size, "little")
    config = LaunchConfig.of(grid, block, shared)
    if engine == "general":
        counters = compiled.execute(program, config, buffer, memory, symbols, RunOptions(), general=True)
    else:
        counters = ENGINES[engine](program, config, buffer, memory, symbols, RunOptions())
    return [a for a in copies if isinstance(a, np.ndarray)], counters


def launch_on_all(
    program: Program, arguments: list, grid: object, block: object, shared: int = 0
) -> tuple[list, Counters]:
    """Run on every variant, which must agree in every bit and every counter; gives what they give."""
    arrays, counters = launch(program, VARIANTS[0], arguments, grid, block, shared)
    for engine in VARIANTS[1:]:
        others, counted = launch(program, engine, arguments, grid, block, shared)
        assert all(x.tobytes() == y.tobytes() for x, y in zip(arrays, others, strict=True)), engine
        assert counters.differences(counted) == {}, engine
    return arrays, counters
