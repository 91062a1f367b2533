"""Runs small PTX kernels on either engine: arrays in, arrays and counters out."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from gpulab.counters import Counters
from gpulab.emulator import ENGINES, Engine, Memory, Program, RunOptions, load, place_variables
from gpulab.launch import LaunchConfig
from gpulab.ptx import Module, parse

ENGINE_NAMES = tuple(ENGINES)
"""Every engine of the package; each test of semantics runs on all of them."""

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


@dataclass(frozen=True)
class Run:
    """What a launch did."""

    program: Program
    counters: Counters
    symbols: dict[str, int]
    memory: Memory

    def count(self, counter: str, opcode: str) -> list[int]:
        """A counter of all instructions with this opcode, in program order."""
        found = getattr(self.counters, counter)
        opcodes = [instruction.opcode for instruction in self.program.function.instructions]
        return [int(value) for value, each in zip(found, opcodes, strict=True) if each == opcode]


World = tuple[Module, Memory, dict[str, int]]


def new_world(text: str) -> World:
    """A module, its variables placed in a memory of their own."""
    module, memory = parse(text), Memory()
    return module, memory, place_variables(module, memory)


def run(
    engine: str | Engine,
    text: str,
    *arguments: object,
    grid: object = 1,
    block: object = 32,
    shared: int = 0,
    options: RunOptions = RunOptions(),  # noqa: B008
    names: tuple[str, ...] = (),
    entry: str = "",
    world: World | None = None,
) -> Run:
    """Launch a kernel of a module, the first by default; arrays are adopted, scalars copied into the parameter buffer.

    Launches in one `world` share the module's variables.
    """
    module, memory, symbols = world or new_world(text)
    program = load(module, entry or module.entries[0])
    buffer = bytearray(program.parameter_bytes)
    pairs = zip(program.parameters.items(), arguments, strict=True)
    for number, ((_, (offset, size)), argument) in enumerate(pairs):
        if isinstance(argument, np.ndarray) and argument.ndim:
            name = names[number] if number < len(names) else f"array {number}"
            raw = struct.pack("<Q", memory.adopt(argument, name).address)
        else:
            raw = np.asarray(argument).tobytes()
        assert len(raw) == size, f"argument {number} has {len(raw)} bytes, its parameter {size}"
        buffer[offset : offset + size] = raw
    config = LaunchConfig.of(grid, block, shared)
    counters = (ENGINES[engine] if isinstance(engine, str) else engine)(
        program, config, bytes(buffer), memory, symbols, options
    )
    return Run(program, counters, symbols, memory)


def kernel(parameters: str, body: str, registers: str = "", variables: str = "", module: str = "") -> str:
    """A module with one kernel `k`; ``%r``, ``%rd``, ``%f``, ``%fd``, ``%p``, ``%rs`` 0 to 31 are declared."""
    declared = ", ".join(f".param .{item}" for item in parameters.split(", ") if item)
    return f"""{HEADER}{module}
.visible .entry k({declared})
{{
    .reg .pred %p<32>;
    .reg .b16 %rs<32>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    .reg .f32 %f<32>;
    .reg .f64 %fd<32>;
    {registers}
    {variables}
{body}
    ret;
}}
"""
