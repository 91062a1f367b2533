"""Counters that others measured with Nsight Compute, or that NVIDIA documents. The tests and VALIDATION.md both read this table.

Where a hardware counter carries arbitration noise, the exact value of Nsight Compute's SASS counters is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from validation.records import Count, Expectation, Launch, zeros

LD, ST = "pipe_lsu_mem_global_op_ld", "pipe_lsu_mem_global_op_st"
SECTORS_LD, SECTORS_ST = f"l1tex__t_sectors_{LD}.sum", f"l1tex__t_sectors_{ST}.sum"
REQUESTS_LD, REQUESTS_ST = f"l1tex__t_requests_{LD}.sum", f"l1tex__t_requests_{ST}.sum"
PER_REQUEST_LD = f"l1tex__average_t_sectors_per_request_{LD}.ratio"
PER_REQUEST_ST = f"l1tex__average_t_sectors_per_request_{ST}.ratio"
USED_LD = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
USED_ST = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
SHARED_LD = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_ST = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
CONFLICTS_LD = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
CONFLICTS_ST = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
USED_SHARED = "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"
BRANCHES = "smsp__sass_average_branch_targets_threads_uniform.pct"

TRAINING = "OLCF CUDA training series, homework 8, and runs posted of it"
NOTES = "D. Deleter's CUDA notes, github.com/Deleter-D/CUDA, GPU of compute capability 8.9"
GUIDE = "CUDA C++ Best Practices Guide"
STRIDES = "te42kyfo/gpu-benches, gpu-strides, A100, A40 and H200"


def transposed(arguments: Sequence[Any]) -> bool:
    """Whether the second argument is the transpose of the first."""
    return bool(np.array_equal(arguments[1], arguments[0].T))


def _transposition(kernel: str, n: int, block: tuple[int, int], dtype: type) -> Launch:
    def arguments(_: object) -> tuple[Any, ...]:
        matrix = np.arange(n * n, dtype=dtype).reshape(n, n)
        return matrix, np.zeros_like(matrix), np.int32(n)

    return Launch("transposes.cu", kernel, (n // block[0], n // block[1]), block, arguments)


def _doubles(title: str, kernel: str, *counts: Count) -> Expectation:
    launch = _transposition(kernel, 4096, (32, 32), np.float64)
    return Expectation(
        f"transpose 4096² doubles, blocks of 32 x 32, {title}", TRAINING, "A100", launch, counts, transposed
    )


def _double_transpositions() -> list[Expectation]:
    walk = Count(SECTORS_LD, 16_777_216), Count(SECTORS_ST, 4_194_304)
    return [
        _doubles(
            "reading columns",
            "read_columns<double>",
            Count(REQUESTS_LD, 524_288),
            Count(REQUESTS_ST, 524_288),
            *walk,
            Count(PER_REQUEST_LD, 32),
            Count(USED_LD, 25),
            Count(PER_REQUEST_ST, 8),
            Count(USED_ST, 100),
        ),
        _doubles(
            "reading rows",
            "read_rows<double>",
            Count(PER_REQUEST_LD, 8),
            Count(USED_LD, 100),
            Count(PER_REQUEST_ST, 32),
            Count(USED_ST, 25),
        ),
        _doubles(
            "through tile[32][32]",
            "through_tile<32>",
            Count(PER_REQUEST_LD, 8),
            Count(PER_REQUEST_ST, 8),
            Count(SHARED_ST, 16_777_216),
            Count(CONFLICTS_ST, 15_728_640),
            Count(SHARED_LD, 1_048_576),
            Count(CONFLICTS_LD, 0),
            Count(USED_SHARED, 11.76),
        ),
        _doubles(
            "through tile[32][33]",
            "through_tile<33>",
            Count(SHARED_ST, 1_048_576),
            Count(SHARED_LD, 1_048_576),
            Count(CONFLICTS, 0),
            Count(USED_SHARED, 100),
        ),
    ]


def _float_transpositions() -> list[Expectation]:
    small = "transpose 2048² floats, blocks of 16 x 16"
    rows = Count(USED_LD, 100), Count(USED_ST, 25), Count(PER_REQUEST_ST, 16)
    columns = Count(USED_LD, 25), Count(USED_ST, 100)
    tile = Count(SHARED_LD, 524_288), Count(SHARED_ST, 524_288), Count(CONFLICTS, 0)
    warning = (
        Count("memory_l2_theoretical_sectors_global", 75_497_472),
        Count("derived__memory_l2_theoretical_sectors_global_excessive", 58_720_256),
    )

    def large(_: object) -> tuple[Any, ...]:
        return zeros((side, side)), zeros((side, side)), np.int32(side)

    floats = np.float32
    blocks = (16, 16)
    side = 8192
    read_rows, read_columns = "read_rows<float>", "read_columns<float>"
    return [
        Expectation(
            f"{small}, reading rows",
            NOTES,
            "RTX 4090",
            _transposition(read_rows, 2048, blocks, floats),
            rows,
            transposed,
        ),
        Expectation(
            f"{small}, reading columns",
            NOTES,
            "RTX 4090",
            _transposition(read_columns, 2048, blocks, floats),
            columns,
            transposed,
        ),
        Expectation(
            "transpose 4096² floats, blocks of 32 x 16, through tile[16][34]",
            NOTES,
            "RTX 4090",
            _transposition("through_flat_tile", 4096, (32, 16), floats),
            tile,
            transposed,
        ),
        Expectation(
            "transpose 8192² floats, reading rows: the rule of uncoalesced accesses",
            "a posted Nsight Compute report: 58,720,256 excessive sectors (78 %)",
            "A100",
            Launch("transposes.cu", read_rows, (side // 32, side // 32), (32, 32), large),
            warning,
        ),
    ]


def _offset(kernel: str, offset: int, *counts: Count) -> Expectation:
    elements = 8192 * 512

    def arguments(_: object) -> tuple[Any, ...]:
        a = np.arange(elements, dtype=np.float32)
        return a, np.ones_like(a), np.zeros_like(a), np.int32(elements), np.int32(offset)

    def right(found: Sequence[Any]) -> bool:
        a, c = found[0], found[2]
        got, wanted = (
            (c[: elements - offset], a[offset:]) if kernel == "read_offset" else (c[offset:], a[: elements - offset])
        )
        return bool(np.array_equal(got, wanted + 1))

    words = "loads" if kernel == "read_offset" else "stores"
    launch = Launch("requests.cu", kernel, 8192, 512, arguments)
    return Expectation(f"add 4,194,304 floats, {words} from {offset} on", NOTES, "RTX 4090", launch, counts, right)


def _offsets() -> list[Expectation]:
    # 80.00 and not 80: the efficiency at the ragged end shows in the third decimal only.
    return [
        _offset("read_offset", 0, Count(SECTORS_LD, 1_048_576), Count(USED_LD, 100)),
        _offset("read_offset", 11, Count(SECTORS_LD, 1_310_716), Count(USED_LD, 80.00)),
        _offset("read_offset", 128, Count(SECTORS_LD, 1_048_544), Count(USED_LD, 100)),
        _offset("write_offset", 0, Count(SECTORS_ST, 524_288), Count(USED_ST, 100)),
        _offset("write_offset", 11, Count(SECTORS_ST, 655_358), Count(USED_ST, 80.00)),
        _offset("write_offset", 128, Count(SECTORS_ST, 524_272), Count(USED_ST, 100)),
    ]


def _load(
    title: str,
    source: str,
    *counts: Count,
    kind: str = "float",
    stride: int = 1,
    offset: int = 0,
    lanes: range = range(32),
) -> Expectation:
    words = {"char": 1, "short": 2, "float": 4, "float2": 8, "float4": 16}[kind]

    def arguments(_: object) -> tuple[Any, ...]:
        return (
            zeros(1 << 16, np.uint8).view(np.float32)
            if words >= 4
            else zeros(1 << 16, np.int8 if words == 1 else np.int16),
            zeros(1 << 10, np.float32) if words >= 4 else zeros(1 << 10, np.int8 if words == 1 else np.int16),
            *map(np.int32, (stride, offset, lanes.start, lanes.stop)),
        )

    launch = Launch("requests.cu", f"load<{kind}>", 1, 32, arguments)
    return Expectation(f"one warp, {title}", source, "A100", launch, counts)


def _single_requests() -> list[Expectation]:
    def sectors(value: int) -> Count:
        return Count(SECTORS_LD, value)

    forum, profiling = "NVIDIA forum 312884", "Nsight Compute Profiling Guide, memory tables"
    rows = [
        _load("all lanes off", forum, sectors(0), Count(REQUESTS_LD, 0), lanes=range(0)),
        _load("one lane on", forum, sectors(1), lanes=range(7, 8)),
        _load("32 lanes in 32 lines", forum, sectors(32), stride=32),
        _load("floats, aligned", GUIDE, sectors(4)),
        _load("floats, misaligned", GUIDE, sectors(5), offset=1),
        _load("floats, stride 2", GUIDE, sectors(8), Count(USED_LD, 50), stride=2),
        _load("floats, stride 8", GUIDE, sectors(32), stride=8),
        _load("floats, stride 11 from 3 on", GUIDE, sectors(32), stride=11, offset=3),
        _load("floats, all lanes the same", GUIDE, sectors(1), stride=0),
    ]
    widths = {"char": 1, "short": 2, "float": 4, "float2": 8, "float4": 16}
    return rows + [
        _load(f"{8 * size} bits for each lane", profiling, sectors(max(size, 1)), Count(REQUESTS_LD, 1), kind=kind)
        for kind, size in widths.items()
    ]


def _stride(kind: str, stride: int, wavefronts: int) -> Expectation:
    dtype = {"float": np.float32, "double": np.float64}[kind]

    def arguments(_: object) -> tuple[Any, ...]:
        return zeros(64 * stride + 32, dtype), zeros(1, dtype), *map(np.int32, (stride, 8, 0))

    launch = Launch("strides.cu", f"walk<{kind}>", 2, 1024, arguments)
    counts = Count(WAVEFRONTS, wavefronts, per=REQUESTS_LD), Count(REQUESTS_LD, 2 * 32 * 8)
    return Expectation(f"{kind}s in L1 at stride {stride}: wavefronts per load", STRIDES, "A100", launch, counts)


FLOAT_WAVEFRONTS = {
    1: (0, 1, 3, 5, 31, 33),
    2: (2, 6),
    4: (4, 12),
    8: (8, 24),
    16: (16, 48),
    32: (32, 64),
}
DOUBLE_WAVEFRONTS = {2: (1, 3), 4: (2,), 8: (4,), 16: (8,), 32: (16,)}


def _strides() -> list[Expectation]:
    tables = ("float", FLOAT_WAVEFRONTS), ("double", DOUBLE_WAVEFRONTS)
    return [
        _stride(kind, stride, wavefronts)
        for kind, table in tables
        for wavefronts, strides in table.items()
        for stride in strides
    ]


def _shared_loads() -> list[Expectation]:
    def row(
        title: str, source: str, gpu: str, stride: int, together: int, *counts: Count, known: str = ""
    ) -> Expectation:
        def arguments(_: object) -> tuple[Any, ...]:
            return zeros(128), np.int32(stride), np.int32(together)

        launch = Launch("requests.cu", "load_shared", 1, 32, arguments)
        return Expectation(f"128-bit shared load, {title}", source, gpu, launch, counts, known=known)

    bad = Count(SHARED_LD, 32), Count(CONFLICTS_LD, 28)
    pairs = "compute capability 7.x serves equal pairs of lanes in half the wavefronts, which the bank rule here does not know"
    return [
        row("neighbors", "NVIDIA forum 359822", "A100", 1, 1, Count(SHARED_LD, 4), Count(CONFLICTS_LD, 0)),
        row("all lanes in the same 4 banks", "NVIDIA forums 359822 and 339143", "A100", 8, 1, *bad),
        row("equal pairs of lanes", "NVIDIA forum 77228", "T4", 1, 2, Count(SHARED_LD, 2), known=pairs),
    ]


def _atomics() -> list[Expectation]:
    source = "a published test on an RTX 3070; the values of SASS counters"
    metric = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_atom.sum"

    def row(title: str, different: int, sectors: int) -> Expectation:
        def arguments(_: object) -> tuple[Any, ...]:
            words = zeros(32, np.int32), zeros(32, np.int32)
            return (words[0], words[1], np.int32(different)) if different else words[1:]

        launch = Launch("requests.cu", "exchange" if different else "exchange_shared", 1, 32, arguments)
        return Expectation(f"atomicExch of one warp, {title}", source, "A100", launch, (Count(metric, sectors),))

    return [
        row("32 neighboring words", 32, 4),
        row("4 words", 4, 1),
        row("one word", 1, 1),
        row("one word of shared memory", 0, 0),
    ]


def _reductions() -> list[Expectation]:
    def integers(blocks: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(blocks * block, np.int32), zeros(blocks, np.int32)

    counts = Count(SECTORS_LD, 8_912_896), Count(SECTORS_ST, 4_325_376)
    launch = Launch("requests.cu", "reduce_in_place", 131_072, 128, lambda _: integers(131_072, 128))
    title = "sum 16 M integers in place, 131,072 blocks of 128"
    return [Expectation(title, NOTES, "RTX 4090", launch, counts, lambda found: bool((found[1] == 128).all()))]


def _by_compiler() -> list[Expectation]:
    def branches(kernel: str, title: str, percent: float) -> Expectation:
        launch = Launch("requests.cu", kernel, 1, 64, lambda _: (zeros(64),), options=("-G",))
        counts = (Count(BRANCHES, percent),)
        return Expectation(
            f"branches by {title}, compiled for debugging", NOTES, "RTX 4090", launch, counts, compiler=True
        )

    def instructions(first_ones: bool, per_warp: float) -> Expectation:
        def arguments(_: object) -> tuple[Any, ...]:
            return np.ones(64 * 512, np.int32), zeros(64, np.int32)

        launch = Launch("requests.cu", f"reduce_neighbors<{str(first_ones).lower()}>", 64, 512, arguments)
        counts = (Count("smsp__average_inst_executed_per_warp.ratio", per_warp),)
        which = "the first threads work" if first_ones else "every 2nd, 4th … thread works"
        title = f"neighbors are added, {which}"
        return Expectation(title, NOTES, "RTX 4090", launch, counts, compiler=True)

    return [
        branches("by_thread", "the parity of threads", 80.0),
        branches("by_warp", "the parity of warps", 100.0),
        branches("by_two_conditions", "two opposite conditions", 71.43),
        instructions(False, 341.94),
        instructions(True, 115.38),
    ]


@cache
def expectations() -> tuple[Expectation, ...]:
    """All expected counts; those that must agree first."""
    groups = (
        _double_transpositions,
        _offsets,
        _float_transpositions,
        _reductions,
        _single_requests,
        _strides,
        _shared_loads,
        _atomics,
        _by_compiler,
    )
    return tuple(row for group in groups for row in group())
