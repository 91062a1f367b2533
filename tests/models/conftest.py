"""Small hand-made launches: PTX text, read by the real parser, with counters that the test writes down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gpulab.counters import Counters
from gpulab.launch import LaunchConfig
from gpulab.models.run import KernelRun
from gpulab.ptx import parse
from gpulab.ptx.cfg import FlowGraph, flow
from gpulab.ptx.opcodes import Form, form
from gpulab.ptx.syntax import Function

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@dataclass(frozen=True)
class HandMade:
    """What the models read of a program."""

    function: Function
    forms: tuple[Form, ...]
    graph: FlowGraph


def program_of(body: str, head: str = "") -> HandMade:
    """A kernel with this body; registers ``%p %r %rd %f %fd`` are declared."""
    registers = ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<99>; .reg .f64 %fd<99>;\n"
    module = parse(f"{HEAD}{head}.visible .entry k(.param .u64 a) {{\n{registers}{body}\n}}\n")
    function = module.functions["k"]
    forms = tuple(form(instruction) for instruction in function.instructions)
    return HandMade(function, forms, flow(function, forms))


MakeRun = Callable[..., KernelRun]


@pytest.fixture
def make_run() -> MakeRun:
    """Build a `KernelRun`: ``counts`` gives for each instruction what differs from one full warp in each warp."""

    def make(
        body: str,
        counts: dict[int, dict[str, int]] | None = None,
        *,
        grid: int = 1,
        block: int = 32,
        registers: int | None = 32,
        head: str = "",
        **totals: int | None,
    ) -> KernelRun:
        program = program_of(body, head)
        config = LaunchConfig.of(grid, block)
        warps = config.blocks * config.warps_per_block
        counters = Counters.zeros(len(program.forms))
        counters.warp_instructions[:] = warps
        counters.thread_instructions[:] = warps * 32
        counters.thread_instructions_pred_on[:] = warps * 32
        for index, values in (counts or {}).items():
            for name, value in values.items():
                getattr(counters, name)[index] = value
        counters.blocks, counters.warps, counters.threads = config.blocks, warps, warps * 32
        for name, value in totals.items():
            setattr(counters, name, value)
        return KernelRun(program, counters, config, registers, static_shared_bytes=0, local_bytes=0)

    return make
