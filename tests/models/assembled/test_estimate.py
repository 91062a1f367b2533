"""Executed SASS against its real control flow, followed instruction by instruction, and against counts worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from walker import parameters, walk

import gpulab
from gpulab.profiler import Profile

LADDERS = Path(gpulab.__file__).parent / "kernels"
LOOPS = Path(__file__).parent / "loops.cu"
SIZE = 20_000
X, Y, INTEGERS = np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32), np.arange(SIZE, dtype=np.int32)
Launch = tuple[Path, str, tuple[int, ...], tuple[int, ...], tuple[Any, ...]]


@pytest.fixture(scope="module", autouse=True)
def on_a100() -> None:
    gpulab.use("A100")


def profile(file: Path, name: str, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> Profile:
    values = [value.copy() if isinstance(value, np.ndarray) else value for value in args]
    return gpulab.profile(gpulab.RawKernel.from_file(file, name)[grid, block], *values)


def followed(launch: Launch) -> tuple[Profile, np.ndarray]:
    """A profile, and how often its SASS instructions really run."""
    found = profile(*launch)
    config = found.launches[0].record.config
    pointers = [1 << 40 if isinstance(value, np.ndarray) else value for value in launch[4]]
    return found, walk(found.sass_estimate.code, config.grid, config.block, pointers)


def matmul(name: str, n: int, m: int, k: int) -> Launch:
    rows, columns = -(-n // 16), -(-m // 16)
    grid = (rows, columns) if name == "naive" else (columns, rows)
    return LADDERS / "matmul.cu", name, grid, (16, 16), (X, X, Y, *map(np.int32, (n, m, k)))


def loop(name: str, *args: Any, grid: int = 4, block: int = 64) -> Launch:
    values = (np.int32(value) if isinstance(value, int) else value for value in args)
    return LOOPS, name, (grid,), (block,), tuple(values)


EXACT = [
    matmul("naive", 64, 64, 64),
    matmul("naive", 50, 40, 37),
    matmul("coalesced", 33, 33, 11),
    matmul("tiled", 64, 32, 100),
    *((LADDERS / "transpose.cu", name, (5, 3), (32, 8), (X, Y, np.int32(90), np.int32(150)))
      for name in ("naive", "tiled", "padded")),
    *((LADDERS / "reduction.cu", name, (5,), (256,), (X, Y, np.int32(1200)))
      for name in ("interleaved", "sequential", "shuffle")),
    loop("nested3", X, Y, 9),
    loop("stencil", X, Y, 500, block=128),
    loop("gridstride", X, Y, np.float32(2), 5000, block=128),
    loop("histogram", INTEGERS, INTEGERS, 5000, block=128),
    loop("local", X, Y, 10, 3, grid=2),
    loop("integers", INTEGERS, 7, grid=2),
    loop("integers", INTEGERS, 100, grid=2),
    loop("collatz", INTEGERS, 1000),
    loop("inlined", X, Y, 13, grid=2),
]  # fmt: skip
CLOSE = [
    (loop("ragged", X, Y, 250), 0.08),
    (loop("triangle", X, Y, 256), 0.10),
    (loop("nested", X, Y, 3, 64, grid=1), 0.04),
    (loop("nested", X, Y, 10, 37, grid=1), 0.05),
    (loop("register_tile", X, X, Y, 64, grid=1, block=256), 0.01),
]


def title(launch: Launch) -> str:
    return "-".join(
        [launch[0].stem, launch[1], *(str(value) for value in launch[4] if not isinstance(value, np.ndarray))]
    )


@pytest.mark.parametrize("launch", EXACT, ids=title)
def test_every_sass_instruction_is_counted_as_often_as_it_runs(launch: Launch) -> None:
    found, truth = followed(launch)
    estimate = found.sass_estimate
    assert estimate.executed == pytest.approx(truth)
    assert found.sass_metrics["smsp__inst_executed.sum"] == truth.sum()
    assert estimate.agreement == pytest.approx(1)


@pytest.mark.parametrize(
    ("launch", "tolerance"), CLOSE, ids=lambda value: title(value) if isinstance(value, tuple) else ""
)
def test_loops_of_unequal_lengths_are_counted_nearly(launch: Launch, tolerance: float) -> None:
    found, truth = followed(launch)
    assert found.sass_metrics["smsp__inst_executed.sum"] == pytest.approx(truth.sum(), rel=tolerance)


def test_the_walker_itself_counts_as_by_hand() -> None:
    """matmul naive, k = 64: ptxas does 16 steps in a pass, so 4 passes, each with 32 loads and 16 FFMA, and no remainder."""
    found, truth = followed(matmul("naive", 64, 64, 64))
    code = found.sass_estimate.code
    loads = [number for number, instruction in enumerate(code.instructions) if instruction.opcode == "LDG"]
    assert truth[loads].max() == 128 * 4
    assert truth[loads].sum() == 128 * 4 * 32
    products = [number for number, instruction in enumerate(code.instructions) if instruction.opcode == "FFMA"]
    assert truth[products].sum() == 128 * 64
    assert truth[0] == 128 and truth[len(truth) - 1] == 128
    assert parameters((1, np.int32(7), np.int32(8), 3)) == bytes(
        [1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
    )


def test_merged_loads_from_shared_memory() -> None:
    """Of a tile's pass, 16 loads of a row become four of 16 bytes, whose least is 4 wavefronts; 16 of a column stay."""
    found = profile(*matmul("tiled", 64, 64, 64))
    passes = 128 * 4
    assert found.metrics["smsp__inst_executed_op_shared_ld.sum"] == passes * 32
    assert found.sass_metrics["smsp__inst_executed_op_shared_ld.sum"] == passes * (16 + 4)
    assert found.sass_estimate.shared_by_width == {4: (passes * 18, passes * 18), 16: (passes * 4, passes * 16)}
    assert found.sass_metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == passes * 2
    assert found.sass_estimate.by_opcode["LDS.128"] == passes * 4


def test_conflicts_of_merged_loads() -> None:
    """16 threads read 16 bytes each, one behind the other: two words meet in each bank, but in SASS 8 lanes go together."""
    found = profile(*loop("register_tile", X, X, Y, 64, grid=1, block=256))
    steps = 8 * 64
    assert found.metrics["smsp__inst_executed_op_shared_ld.sum"] == steps * 8
    assert found.metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == steps * (4 * 1 + 4 * 2)
    assert found.sass_estimate.shared_by_width[16] == (steps * 2, steps * 2 * 4)


def test_local_memory_is_what_ptxas_left_of_it() -> None:
    found = profile(*loop("local", X, Y, 10, 3, grid=2))
    code = found.sass_estimate.code
    truth = followed(loop("local", X, Y, 10, 3, grid=2))[1]
    for op, opcode in (("ld", "LDL"), ("st", "STL")):
        name = f"l1tex__t_requests_pipe_lsu_mem_local_op_{op}.sum"
        ran = [
            count for instruction, count in zip(code.instructions, truth, strict=True) if instruction.opcode == opcode
        ]
        assert found.metrics[name] == sum(ran) > 0
    in_registers = profile(*loop("register_tile", X, X, Y, 64, grid=1, block=256))
    assert in_registers.metrics["l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"] == 0


def test_slow_ways_of_divisions_do_not_count() -> None:
    found = profile(*loop("inlined", X, Y, 13, grid=2))
    estimate = found.sass_estimate
    calls = [count for instruction, count in zip(estimate.code.instructions, estimate.executed, strict=True)
             if instruction.opcode in ("CALL", "RET")]  # fmt: skip
    assert calls and not any(calls)


def test_a_switch_by_a_jump_table() -> None:
    found = profile(*loop("branches", X, Y, 250))
    code = found.sass_estimate.code
    assert any(instruction.opcode == "BRX" for instruction in code.instructions)
    assert max(len(block.successors) for block in code.blocks) > 2
    assert found.sass_metrics.agreement > 0.95


def test_spills_are_counted_per_execution() -> None:
    source = """
    extern "C" __global__ void many(float* x) {
        float v[40];
        for (int i = 0; i < 40; ++i) v[i] = x[i * blockDim.x];
        for (int r = 0; r < 3; ++r) for (int i = 0; i < 40; ++i) v[i] = v[i] * v[(i * 7 + 3) % 40] + 1;
        for (int i = 0; i < 40; ++i) x[i * blockDim.x] = v[i];
    }"""
    kernel = gpulab.RawKernel(source, "many", options=("--maxrregcount=24",))
    found = gpulab.profile(kernel[3, 64], np.ones(40 * 64, np.float32))
    stored = found.launches[0].record.assembled.spill_store_bytes
    sectors = found.metrics["l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"]
    assert stored > 0
    assert sectors == 6 * stored  # straight-line code: 6 warps, each byte of 32 lanes is one sector


def test_without_a_disassembler_there_is_none() -> None:
    found = gpulab.profile(
        gpulab.RawKernel.from_file(LOOPS, "local")[2, 64], X, Y, np.int32(10), np.int32(3), gpu="V100"
    )
    assert found.sass_estimate is None and found.sass_metrics is None
    assert "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum" not in found.metrics
    assert all(line.sass_instructions is None for line in found.lines)
    assert "7.0" in found.source(found.lines.hottest(1)[0].line).notes[0]
