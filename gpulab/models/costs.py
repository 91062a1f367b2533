"""What a PTX instruction costs once it is SASS: issue slots, and cycles until its result is there.

ptxas is not run for this: it is a table of how many SASS instructions a PTX form usually becomes. 64-bit integers
take two 32-bit halves; division and square root are short programs; parameters and constants are operands, not loads.
"""

from __future__ import annotations

from gpulab.gpus import Gpu
from gpulab.models.tally import FormLike, Tally
from gpulab.ptx.matrix import ELEMENT_BITS, Matrix

_WIDE = ("s64", "u64", "b64")
#: SASS instructions of forms that are no single one: (opcode, 64-bit or not). Shifts usually become part of an LEA.
_EXPANSIONS = {
    ("div", False): 14.0,
    ("div", True): 60.0,
    ("rem", False): 16.0,
    ("rem", True): 62.0,
    ("mul", True): 3.0,
    ("mad", True): 3.0,
    ("abs", True): 4.0,
    ("shl", True): 1.0,
    ("shr", True): 1.0,
    ("popc", True): 3.0,
}
_FREE = ("cvta", "call")
_FLOAT_PROGRAMS = {("div", "f32"): 10.0, ("rcp", "f32"): 7.0, ("sqrt", "f32"): 8.0}
#: For doubles: as long as so many FMAs hold the pipe, and as long as so many take one after the other
#: (te42kyfo/gpu-benches, cuda-incore on a V100: 7.5 and 9.6 cycles for each warp, 112 and 101 cycles in a chain).
_FLOAT64_PROGRAMS = {"div": (7.5, 14.0), "sqrt": (9.6, 12.6)}
_FLOAT64_PROGRAM = _FLOAT64_PROGRAMS["div"]
#: One MUFU each; of these, other forms than ``.ftz`` scale denormals before or behind it.
_SINGLE_MUFU = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh")
BRANCH_CYCLES = 8.0
BARRIER_CYCLES = 20.0
#: Latency of a product of 16 x 8 x 16 halves on an A100 (W. Sun et al., "Dissecting Tensor Cores via Microbenchmarks").
TENSOR_CYCLES = 25.0
_HMMA_BITS = 16 * 8 * 16 * 16


def issue_slots(form: FormLike) -> float:
    """SASS instructions that a PTX instruction usually becomes; 0 where it vanishes."""
    if form.opcode in _FREE or (form.kind in ("load", "store") and form.space in ("param", "const", "call")):
        return 0.0
    if form.matrix:
        return _matrix_slots(form.matrix)
    if form.pipe == "move":
        # Copies are coalesced into the instructions around them more often than not.
        return 0.5
    if form.pipe == "convert" and not {"f16", "f32", "f64", "bf16"} & {form.type, form.source_type}:
        # A widened index is the input of an IMAD.WIDE, a narrowed one a register of a pair.
        return 0.5
    wide = form.type in _WIDE and form.mode != "wide"
    if form.kind == "special":
        return _special_slots(form)
    if form.pipe == "int":
        return _EXPANSIONS.get((form.opcode, wide), 2.0 if wide else 1.0)
    return 1.0


def _matrix_slots(matrix: Matrix) -> float:
    """An `HMMA` or `IMMA` multiplies 16 x 8 x 16 halves, or as many bits of others; a fragment is loaded in pieces."""
    if matrix.fragment:
        return float(len(matrix.of(matrix.fragment).accesses(matrix.layout)))
    m, n, k = matrix.shape
    return max(1.0, m * n * k * ELEMENT_BITS[matrix.types[0]] / _HMMA_BITS)


def _special_slots(form: FormLike) -> float:
    if form.type == "f64":
        return _FLOAT64_PROGRAMS.get(form.opcode, _FLOAT64_PROGRAM)[0]
    if form.mode in ("approx", "full"):
        return 1.0 if form.opcode in _SINGLE_MUFU and form.ftz else 2.0
    return _FLOAT_PROGRAMS.get((form.opcode, form.type or ""), 2.0)


def tensor_rate(matrix: Matrix, gpu: Gpu) -> float:
    """Multiplications and additions of an SM per cycle; that of f16 where the GPU has none for the type."""
    kind = matrix.types[0]
    bits = ELEMENT_BITS[kind]
    if kind in ("e4m3", "e5m2"):
        rate = gpu.tensor_fp8_flop_per_cycle
    elif bits == 16:
        half = matrix.types[3] == "f16"
        rate = gpu.tensor_fp16_accumulated_flop_per_cycle if half else gpu.tensor_fp16_flop_per_cycle
    elif bits > 16:
        rate = gpu.tensor_tf32_flop_per_cycle if bits == 32 else gpu.tensor_fp64_flop_per_cycle
    else:
        # Narrower integers go in proportion.
        rate = gpu.tensor_int8_op_per_cycle * 8 / bits
    return rate or gpu.tensor_fp16_flop_per_cycle


def tensor_rates(tally: Tally, gpu: Gpu) -> dict[str, float]:
    """FLOP of an SM per cycle, by the types of matrices that a launch multiplied."""
    ran = tally.where(pipes=("tensor",)) & (tally.counters.warp_instructions > 0)
    matrices = {form.matrix for form, did in zip(tally.forms, ran, strict=True) if did and form.matrix and form.flops}
    return {matrix.types[0]: tensor_rate(matrix, gpu) for matrix in matrices}


def pipe_cycles(form: FormLike, gpu: Gpu) -> dict[str, float]:
    """Cycles for which a warp instruction holds arithmetic pipes of an SM, by pipe: fma, alu, fp64, fp16, sfu, tensor.

    Integer multiplications run on the FMA pipe, comparisons of floats on the ALU; the upper half of a 64-bit addition
    usually becomes an IMAD.X, which is the FMA pipe's as well.
    """
    slots, half_rate = issue_slots(form), 32 / gpu.int32_lanes_per_sm
    if form.pipe == "fp32":
        if form.kind in ("fadd", "fmul", "ffma", "special"):
            return {"fma": slots * 32 / gpu.fp32_lanes_per_sm}
        return {"alu": slots * half_rate}
    if form.pipe == "tensor" and form.matrix:
        return {"tensor": 32 * form.matrix.flops / tensor_rate(form.matrix, gpu)}
    if form.pipe == "sfu":
        # One instruction of the program is the MUFU; the others are FP32 arithmetic.
        return {"sfu": 32 / gpu.sfu_lanes_per_sm, "fma": (slots - 1) * 32 / gpu.fp32_lanes_per_sm}
    if form.pipe in ("fp64", "fp16"):
        lanes = {"fp64": gpu.fp64_lanes_per_sm, "fp16": gpu.fp16_lanes_per_sm}[form.pipe]
        return {form.pipe: slots * 32 / lanes}
    if form.pipe == "convert" and "f64" in (form.type, form.source_type):
        return {"sfu": slots * 32 / gpu.sfu_lanes_per_sm}
    if form.pipe not in ("int", "convert"):
        return {}
    if form.opcode in ("mul", "mad"):
        return {"fma": slots * half_rate}
    if form.opcode in ("add", "sub") and slots == 2:
        return {"alu": half_rate, "fma": half_rate}
    return {"alu": slots * half_rate}


def result_latency(form: FormLike, gpu: Gpu) -> float:
    """Cycles from issue to a dependent issue, for all that does not depend on where data lie."""
    slots = issue_slots(form)
    if form.pipe == "fp64":
        chain = _FLOAT64_PROGRAMS.get(form.opcode, _FLOAT64_PROGRAM)[1] if form.kind == "special" else 1.0
        return gpu.fp64_latency_cycles * chain
    if form.pipe == "tensor":
        return TENSOR_CYCLES
    if form.pipe == "sfu":
        return gpu.sfu_latency_cycles + gpu.alu_latency_cycles * (slots - 1)
    if form.kind in ("shuffle", "vote"):
        return gpu.shared_latency_cycles
    if form.kind == "barrier":
        return BARRIER_CYCLES
    # A 64-bit operation is a chain of two 32-bit ones; a program of n instructions is a chain of n.
    return gpu.alu_latency_cycles * slots
