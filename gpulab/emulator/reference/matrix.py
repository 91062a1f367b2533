"""Matrix products of a warp, and matrices between registers and memory (PTX ISA 9.7.14).

Products are exact and are added up in float64, beginning with C, in ascending order of k; the sum is rounded once, to
nearest even, to the type of D. (Tensor cores add in an order of their own and cut off low bits of the sum instead of
rounding it, more or fewer of them by generation, so that results agree only within the accumulator's precision.) The sums
of f64 are rounded after each step, as those of a chain of `fma` are. Integer sums are exact, then clamped with
``.satfinite`` and else wrapped. The low 13 bits of a tf32 register are ignored.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpulab.emulator import exact
from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.memory import locate, locate_at
from gpulab.emulator.reference.values import LANES, canonical
from gpulab.emulator.reference.warp import Warp
from gpulab.ptx.matrix import ELEMENT_BITS, Fragment
from gpulab.ptx.opcodes import Form, Role
from gpulab.ptx.syntax import Address, Group, Instruction, Operand

_MATRIX_ROWS = 8
_ROW_BYTES = 16
_S32 = -(2**31), 2**31 - 1


def require_full_warp(warp: Warp, index: int, on: np.ndarray) -> None:
    """``.aligned``: every lane of the warp must execute the instruction together."""
    if not on.all():
        raise warp.fault("warp-sync/aligned", index, int(np.flatnonzero(on)[0]))


# ---- fragments


@lru_cache(maxsize=128)
def places(fragment: Fragment) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of all elements, shape (registers, 32, elements of a register) each."""
    shape = fragment.registers, LANES, fragment.elements
    found = np.array([fragment.position(*slot) for slot in np.ndindex(shape)])
    return found[:, 0].reshape(shape), found[:, 1].reshape(shape)


def _registers(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Group) else (operand,)


def _read(warp: Warp, operand: Operand, role: Role) -> np.ndarray:
    """The registers of a fragment, shape (registers, 32), uint32 or uint64."""
    return np.stack([warp.read(register, role) for register in _registers(operand)])


def _write(warp: Warp, operand: Operand, role: Role, words: np.ndarray, on: np.ndarray) -> None:
    for register, word in zip(_registers(operand), words, strict=True):
        warp.write(register, word, role.type, on)


def _patterns(fragment: Fragment, words: np.ndarray) -> np.ndarray:
    """Elements of registers as patterns, shape (registers, 32, elements), of the registers' dtype."""
    shifts = np.arange(fragment.elements, dtype=words.dtype) * words.dtype.type(ELEMENT_BITS[fragment.type])
    mask = words.dtype.type((1 << ELEMENT_BITS[fragment.type]) - 1)
    return words[:, :, None] >> shifts & mask


def _words(fragment: Fragment, patterns: np.ndarray) -> np.ndarray:
    """Registers from the patterns of their elements, the opposite of `_patterns`."""
    dtype = np.uint64 if fragment.register_type == "b64" else np.uint32
    shifts = np.arange(fragment.elements, dtype=dtype) * dtype(ELEMENT_BITS[fragment.type])
    return np.bitwise_or.reduce(patterns.astype(dtype) << shifts, axis=2)


def _gathered(fragment: Fragment, words: np.ndarray) -> np.ndarray:
    """The matrix that a fragment holds, as numbers: float64, or int64 for integers and bits."""
    originals = _originals(fragment)
    values = _numbers(fragment.type, _patterns(fragment, words[:originals]))
    matrix = np.zeros((fragment.rows, fragment.columns), values.dtype)
    rows, columns = places(fragment)
    matrix[rows[:originals], columns[:originals]] = values
    return matrix


def _originals(fragment: Fragment) -> int:
    """Registers that are not copies of others."""
    return fragment.tiles if fragment.letter in "ab" else fragment.registers


def _numbers(kind: str, patterns: np.ndarray) -> np.ndarray:
    if kind == "f64":
        return patterns.view(np.float64)
    if kind == "f16":
        return patterns.astype(np.uint16).view(np.float16).astype(np.float64)
    if kind in ("bf16", "tf32", "f32"):
        wide = patterns << np.uint32(16) if kind == "bf16" else patterns
        kept = wide & np.uint32(0xFFFFE000) if kind == "tf32" else wide
        return kept.view(np.float32).astype(np.float64)
    if kind == "e5m2":
        # The upper half of an f16.
        return _numbers("f16", patterns << np.uint32(8))
    if kind == "e4m3":
        return _e4m3(patterns)
    if kind[0] == "s":
        bits = ELEMENT_BITS[kind]
        return (patterns.astype(np.int64) ^ (1 << bits - 1)) - (1 << bits - 1)
    return patterns.astype(np.int64)


def _e4m3(patterns: np.ndarray) -> np.ndarray:
    """Four bits of exponent with bias 7, three of fraction; no infinities, and only all ones is NaN."""
    magnitude = (patterns & 0x7F).astype(np.int64)
    exponent, fraction = magnitude >> 3, magnitude & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    value = np.where(magnitude == 0x7F, np.nan, value)
    return np.where(patterns & 0x80, -value, value)


# ---- products


def multiply(warp: Warp, index: int, on: np.ndarray) -> None:
    """``mma`` and ``wmma.mma``: D = A B + C."""
    require_full_warp(warp, index, on)
    instruction, form = _at(warp, index)
    assert form.matrix is not None
    operands = zip("abc", instruction.operands[1:], form.roles[1:], strict=True)
    a, b, c = (_gathered(form.matrix.of(letter), _read(warp, operand, role)) for letter, operand, role in operands)
    target = form.matrix.of("d")
    result = _patterns_of(_product(form, a, b, c), target.type)
    _write(warp, instruction.operands[0], form.roles[0], _words(target, result[places(target)]), on)


def _product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    assert form.matrix is not None
    kind = form.matrix.types[0]
    if kind == "f64":
        return _fused_product(a, b, c)
    if kind == "b1":
        combine = np.bitwise_xor if form.operation == "xor" else np.bitwise_and
        total = c + combine(a[:, :, None], b[None, :, :]).sum(axis=1)
        return _wrapped(total)
    if c.dtype == np.int64:
        total = a @ b + c
        return np.clip(total, *_S32) if form.finite else _wrapped(total)
    for k in range(a.shape[1]):
        c = c + a[:, k, None] * b[k]
    return c


def _wrapped(total: np.ndarray) -> np.ndarray:
    return total.astype(np.uint32).view(np.int32).astype(np.int64)


def _fused_product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    rows, columns = c.shape
    result = c.copy()
    for row, column in np.ndindex(rows, columns):
        for k in range(a.shape[1]):
            one, other, total = float(a[row, k]), float(b[k, column]), float(result[row, column])
            result[row, column] = exact.fused_multiply_add(one, other, total, "rn", exact.FORMATS["f64"])
    return result


def _patterns_of(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers rounded once to a type, as patterns."""
    if kind == "s32":
        return values.astype(np.int64).astype(np.uint32)
    dtype, pattern = {"f16": (np.float16, "u2"), "f32": (np.float32, "u4"), "f64": (np.float64, "u8")}[kind]
    return canonical(values.astype(dtype), kind).view(pattern)


# ---- between registers and memory


def load_store(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``wmma.load`` and ``wmma.store``: each access of the fragment is a request of its own."""
    require_full_warp(warp, index, on)
    instruction, form = _at(warp, index)
    matrix = form.matrix
    assert matrix is not None
    is_load = form.mode == "load"
    address, target = instruction.operands[1 if is_load else 0], instruction.operands[0 if is_load else 1]
    assert isinstance(address, Address)
    fragment, bits = matrix.of(matrix.fragment), ELEMENT_BITS[matrix.types[0]]
    base, stride = warp.addresses(address), _stride(warp, instruction, form)
    role = form.roles[0 if is_load else 1]
    patterns = None if is_load else _patterns(fragment, _read(warp, target, role))
    found = np.zeros((fragment.registers, LANES, fragment.elements), np.uint64)
    for slots in fragment.accesses(matrix.layout):
        rows, columns = (place[slots[0][0], :, slots[0][1]] for place in places(fragment))
        major, minor = (rows, columns) if matrix.layout == "row" else (columns, rows)
        offsets = (major * stride + minor) * bits // 8
        hosts = locate_at(warp, tally, index, base + offsets, on)
        for lane, host in hosts.items():
            if patterns is None:
                pattern = int.from_bytes(host.tobytes(), "little")
                for number, (register, element) in enumerate(slots):
                    found[register, lane, element] = pattern >> number * bits & (1 << bits) - 1
            else:
                pattern = sum(int(patterns[slot[0], lane, slot[1]]) << n * bits for n, slot in enumerate(slots))
                host[:] = np.frombuffer(pattern.to_bytes(len(host), "little"), np.uint8)
    if is_load:
        copies = np.arange(fragment.registers) % _originals(fragment)
        _write(warp, target, role, _words(fragment, found[copies]), on)


def _stride(warp: Warp, instruction: Instruction, form: Form) -> np.ndarray:
    """Elements from one row (column) to the next: the last operand, or without it as many as a row (column) has."""
    matrix = form.matrix
    assert matrix is not None
    fragment = matrix.of(matrix.fragment)
    if len(instruction.operands) < len(form.roles):
        return np.full(LANES, fragment.columns if matrix.layout == "row" else fragment.rows)
    return warp.read(instruction.operands[2], form.roles[2]).astype(np.int64)


def load_rows(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``ldmatrix``: matrices of eight rows of eight b16, whose addresses come from eight lanes each."""
    require_full_warp(warp, index, on)
    instruction, form = _at(warp, index)
    count = form.roles[0].count
    hosts = locate(warp, tally, index, instruction.operands[1], np.arange(LANES) < _MATRIX_ROWS * count)
    rows = np.stack(list(hosts.values())).view(np.uint16).reshape(count, _MATRIX_ROWS, _MATRIX_ROWS)
    if form.mode == "trans":
        rows = rows.transpose(0, 2, 1)
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(count, LANES)
    _write(warp, instruction.operands[0], form.roles[0], words, on)


def store_rows(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``stmatrix``: the opposite of ``ldmatrix``."""
    require_full_warp(warp, index, on)
    instruction, form = _at(warp, index)
    count = form.roles[1].count
    hosts = locate(warp, tally, index, instruction.operands[0], np.arange(LANES) < _MATRIX_ROWS * count)
    rows = _read(warp, instruction.operands[1], form.roles[1]).view(np.uint16)
    rows = rows.reshape(count, _MATRIX_ROWS, _MATRIX_ROWS)
    if form.mode == "trans":
        rows = rows.transpose(0, 2, 1)
    for host, row in zip(
        hosts.values(), np.ascontiguousarray(rows).view(np.uint8).reshape(-1, _ROW_BYTES), strict=True
    ):
        host[:] = row


def transpose(warp: Warp, index: int, on: np.ndarray) -> None:
    """``movmatrix``: a matrix of eight rows of eight b16 across the registers of a warp, transposed."""
    require_full_warp(warp, index, on)
    instruction, form = _at(warp, index)
    rows = warp.read(instruction.operands[1], form.roles[1]).view(np.uint16).reshape(_MATRIX_ROWS, _MATRIX_ROWS)
    warp.write(instruction.operands[0], np.ascontiguousarray(rows.T).view(np.uint32).ravel(), "b32", on)


def _at(warp: Warp, index: int) -> tuple[Instruction, Form]:
    program = warp.launch.program
    return program.function.instructions[index], program.forms[index]
