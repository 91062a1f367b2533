"""Rows of the table of metrics: instructions, branches, arithmetic, and the launch itself.

Instructions are counted in PTX; ptxas makes more or fewer SASS instructions of them.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.launch import WARP_SIZE
from gpulab.models.metric import Metric, Sources, ratio

ARITHMETIC = {
    "fadd": "FP32 additions and subtractions",
    "fmul": "FP32 multiplications",
    "ffma": "FP32 fused multiply-adds",
    "dadd": "FP64 additions and subtractions",
    "dmul": "FP64 multiplications",
    "dfma": "FP64 fused multiply-adds",
    "hadd": "FP16 additions and subtractions",
    "hmul": "FP16 multiplications",
    "hfma": "FP16 fused multiply-adds",
    "integer": "integer operations",
    "conversion": "type conversions",
}


def _instruction_rows() -> list[Metric]:
    def total(counter: str) -> Callable[[Sources], int]:
        return lambda s: s.tally.total(counter)

    warp, thread, on = (
        total(name) for name in ("warp_instructions", "thread_instructions", "thread_instructions_pred_on")
    )
    rows = [
        ("smsp__inst_executed.sum", "inst", "warp instructions executed, counted in PTX", warp),
        ("smsp__thread_inst_executed.sum", "inst", "the same, times the active lanes", thread),
        ("smsp__thread_inst_executed_pred_on.sum", "inst", "the same, times the lanes whose guard is true", on),
        (
            "smsp__thread_inst_executed_per_inst_executed.ratio",
            "thread/inst",
            "active lanes per warp instruction, of 32",
            lambda s: ratio(thread(s), warp(s)),
        ),
        (
            "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
            "thread/inst",
            "lanes that are active and on, per warp instruction, of 32",
            lambda s: ratio(on(s), warp(s)),
        ),
        (
            "smsp__thread_inst_executed_per_inst_executed.pct",
            "%",
            "lanes that are active and on, of all: warp execution efficiency",
            lambda s: ratio(on(s), warp(s) * WARP_SIZE, 100),
        ),
        (
            "smsp__average_inst_executed_per_warp.ratio",
            "inst/warp",
            "warp instructions executed by each warp, counted in PTX",
            lambda s: ratio(warp(s), s.tally.warps),
        ),
    ]
    return [Metric(name, unit, meaning, "emulated", value) for name, unit, meaning, value in rows]


def _branch_rows() -> list[Metric]:
    def branches(s: Sources) -> int:
        return s.tally.total("warp_instructions", kinds=("branch",))

    def divergent(s: Sources) -> int:
        return s.tally.total("divergent_branches")

    targets = "smsp__sass_branch_targets"
    rows = [
        (f"{targets}.sum", "branch", "branches executed by warps, counted in PTX", branches),
        (f"{targets}_threads_divergent.sum", "branch", "branches whose lanes took different ways", divergent),
        (
            f"{targets}_threads_uniform.sum",
            "branch",
            "branches whose lanes all went the same way",
            lambda s: branches(s) - divergent(s),
        ),
        (
            "smsp__sass_average_branch_targets_threads_uniform.pct",
            "%",
            "branch efficiency: uniform branches of all",
            lambda s: ratio(branches(s) - divergent(s), branches(s), 100),
        ),
    ]
    return [Metric(*row[:3], "emulated", row[3], "there are no branches") for row in rows]


def _arithmetic_rows() -> list[Metric]:
    def row(name: str, meaning: str, kinds: tuple[str, ...]) -> Metric:
        return Metric(
            f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum",
            "inst",
            f"thread-level {meaning}, counted in PTX",
            "emulated",
            lambda s: s.tally.total("thread_instructions_pred_on", kinds=kinds),
        )

    groups = {
        "fp32": ("FP32 additions, multiplications and fused multiply-adds", ("fadd", "fmul", "ffma")),
        "fp64": ("FP64 additions, multiplications and fused multiply-adds", ("dadd", "dmul", "dfma")),
        "fp16": ("FP16 additions, multiplications and fused multiply-adds", ("hadd", "hmul", "hfma")),
        "control": ("branches, calls, exits and barriers", ("branch", "control", "barrier")),
        "inter_thread_communication": ("shuffles and votes", ("shuffle", "vote")),
    }
    rows = [row(kind, meaning, (kind,)) for kind, meaning in ARITHMETIC.items()]
    return rows + [row(name, meaning, kinds) for name, (meaning, kinds) in groups.items()]


TENSOR_KINDS = {
    "hmma": "f16, bf16, tf32 or fp8",
    "dmma": "f64",
    "imma": "integers",
    "bmma": "bits",
}


def _tensor_rows() -> list[Metric]:
    def row(name: str, meaning: str, kinds: tuple[str, ...]) -> Metric:
        return Metric(
            f"sm__inst_executed_pipe_tensor{name}.sum",
            "inst",
            f"warp instructions that multiply matrices{meaning}, counted in PTX",
            "emulated",
            lambda s: s.tally.total("warp_instructions", kinds=kinds, pipes=("tensor",)),
        )

    return [row("", "", ()), *(row(f"_op_{kind}", f" of {what}", (kind,)) for kind, what in TENSOR_KINDS.items())]


def _launch_rows() -> list[Metric]:
    unknown = "ptxas is missing, so the registers are unknown"
    limits = {"blocks": "blocks", "registers": "registers", "shared_mem": "shared", "warps": "warps"}
    rows = [
        Metric(
            f"launch__occupancy_limit_{name}",
            "block",
            f"blocks per SM that {name.replace('shared_mem', 'shared memory')} would allow",
            "launch",
            lambda s, key=key: s.occupancy.limits[key],
        )
        for name, key in limits.items()
    ]
    facts = [
        ("grid_size", "block", "blocks of the grid", lambda s: s.run.config.blocks),
        ("block_size", "thread", "threads of a block", lambda s: s.run.config.threads_per_block),
        (
            "thread_count",
            "thread",
            "threads of the grid",
            lambda s: s.run.config.blocks * s.run.config.threads_per_block,
        ),
        ("registers_per_thread", "register", "32-bit registers of a thread", lambda s: s.run.registers_per_thread),
        ("shared_mem_per_block_static", "byte", "declared in the kernel", lambda s: s.run.static_shared_bytes),
        (
            "shared_mem_per_block_dynamic",
            "byte",
            "asked for by the launch",
            lambda s: s.run.config.dynamic_shared_bytes,
        ),
        (
            "waves_per_multiprocessor",
            "wave",
            "times that the grid fills the GPU",
            lambda s: s.run.config.blocks / (s.gpu.sm_count * s.occupancy.blocks_per_sm),
        ),
    ]
    rows += [Metric(f"launch__{name}", unit, words, "launch", value, unknown) for name, unit, words, value in facts]
    rows.append(
        Metric(
            "sm__maximum_warps_per_active_cycle_pct",
            "%",
            "theoretical occupancy",
            "launch",
            lambda s: 100 * s.occupancy.theoretical,
        )
    )
    return rows


def work_rows() -> list[Metric]:
    """The rows of this module."""
    return _instruction_rows() + _branch_rows() + _arithmetic_rows() + _tensor_rows() + _launch_rows()
