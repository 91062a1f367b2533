"""The engines agree bit for bit on every computing form of the instruction table, on inputs chosen to bite."""

from __future__ import annotations

import random
from functools import cache

import pytest
from form_matrix import all_rows, form_of, sample
from instruction_suite import LANES, SIZES, Bits, Case, is_nan, outputs
from ptx_harness import ENGINE_NAMES

from gpulab.ptx.opcodes import Form, Row

FORMS_PER_ROW = 3  # 40 find nothing more, and take minutes
CASES_PER_KERNEL = 60
CONTROL = {"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "bar", "barrier"}
POLICIES = {"createpolicy"}  # of caches; nothing reads them
WARP_WIDE = {"shfl", "vote", "match", "activemask", "redux", "elect", "mma", "wmma", "movmatrix"}

_FLOAT_PATTERNS = {
    # zeros, denormals, smallest normal, ones and their neighbours, halves, large, infinities, NaN
    "f16": [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0x3BFF, 0x3C01, 0xBC00, 0x3800, 0x4100, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00],
    "bf16": [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0x3F7F, 0x3F81, 0xBF80, 0x3F00, 0x4020, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0],
    "f32": [
        0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F7FFFFF, 0x3F800001, 0xBF800000, 0x3F000000, 0x40200000,
        0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4F000000, 0xCF000000, 0x5F000000, 0x4B800001, 0xC2FE0000,
        0x42B17218, 0x7E800000, 0x7F000000,
    ],
    "f64": [
        0, 1 << 63, 1, (1 << 63) | 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, (0x3FF << 52) - 1, (0x3FF << 52) + 1, 0xBFF << 52,
        0x3FE << 52, 0x4004 << 48, (0x7FF << 52) - 1, (0xFFF << 52) - 1, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x41E << 52,
        0xC1E << 52, 0x43E << 52, 0x434 << 52, 0x36A << 52, 0x380 << 52, 0x47EFFFFFE0000000,
    ],
}  # fmt: skip


def _inputs(type_name: str, chooser: random.Random) -> list[int]:
    """32 patterns of a type: the special ones shuffled, and random ones."""
    size = SIZES[type_name]
    if type_name == "pred":
        return [chooser.randrange(2) for _ in range(LANES)]
    if type_name.endswith("x2"):
        bits = 8 * size // 2
        half = _FLOAT_PATTERNS.get(type_name.removesuffix("x2")) or _edges(bits)
        return [chooser.choice(half) << bits | chooser.choice(half) for _ in range(LANES)]
    special = _FLOAT_PATTERNS.get(type_name) or _edges(8 * size)
    return [chooser.choice(special) if chooser.random() < 0.7 else chooser.getrandbits(8 * size) for _ in range(LANES)]


def _edges(bits: int) -> list[int]:
    """Integers at which things change: around zero, the sign, the width, and small shift counts."""
    top = 1 << (bits - 1)
    small = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100]
    return [
        value % (1 << bits) for value in (*small, -1, -2, -7, top, top - 1, top + 1, top >> 1, 0x12345678, 0x0F0F0F0F)
    ]


def _case(spelling: str, row: Row) -> Case:
    found = form_of(spelling, row)
    roles = [role for role in found.roles if not role.optional or found.boolean is not None]
    sources = tuple(role.type for role in roles if not role.written and role.type != "imm")
    results = tuple(["pred", "pred"] if roles[0].name == "p|q" else [roles[0].type])
    letters = iter("abcs")
    operands = [
        ("{d}|{e}" if role.name == "p|q" else "{d}")
        if role.written
        else "0xE4"
        if role.type == "imm"
        else "{" + next(letters) + "}"
        for role in roles
    ]
    chooser = random.Random(spelling)
    columns = [[Bits(value) for value in _inputs(each, chooser)] for each in sources]
    rows = tuple((*lane, *(Bits(0) for _ in results)) for lane in zip(*columns, strict=True))
    return Case(spelling, _text(found, spelling, operands), sources, results, rows)


def _text(found: Form, spelling: str, operands: list[str]) -> str:
    """The instruction; one that takes the carry flag gets it from the comparison of its first two sources."""
    line = f"{spelling} {', '.join(operands)};"
    return (
        f"sub.cc.{found.type} {{d}}, {{a}}, {{b}}; {line}"
        if spelling.split(".")[0] in ("addc", "subc", "madc")
        else line
    )


def _computes(spelling: str, row: Row) -> bool:
    found = form_of(spelling, row)
    return (
        found.opcode not in CONTROL | WARP_WIDE | POLICIES
        and bool(found.roles)
        and found.roles[0].written
        and found.access_bytes == 0
        and found.type != "b128"
    )


def computing_rows() -> list[Row]:
    """The rows without those of memory accesses, which have thousands of spellings and tests of their own."""
    return [row for row in all_rows() if row.kind not in ("load", "store", "atomic", "reduction")]


@cache
def kernels() -> dict[str, tuple[Case, ...]]:
    """All cases, in kernels of a size that compiles quickly."""
    cases = [
        _case(spelling, row)
        for row in computing_rows()
        for spelling in sample(row, FORMS_PER_ROW)
        if _computes(spelling, row)
    ]
    groups = [tuple(cases[start : start + CASES_PER_KERNEL]) for start in range(0, len(cases), CASES_PER_KERNEL)]
    return {f"{group[0].name} to {group[-1].name}": group for group in groups}


@pytest.mark.parametrize("name", kernels())
def test_engines_agree_on_every_form(name: str) -> None:
    cases = kernels()[name]
    wanted, found = (outputs(engine, cases) for engine in ENGINE_NAMES)
    for case_, mine, theirs in zip(cases, wanted, found, strict=True):
        for type_name, expected, got in zip(case_.results, mine, theirs, strict=True):
            for lane in range(LANES):
                a, b = int(expected[lane]), int(got[lane])
                both_nan = is_nan(a, type_name) and is_nan(b, type_name)
                inputs = [hex(value) for value in case_.rows[lane][: len(case_.sources)]]
                assert a == b or both_nan, (
                    f"{case_.name} of {inputs}: {ENGINE_NAMES[0]} {a:#x}, {ENGINE_NAMES[1]} {b:#x}"
                )


def test_every_form_of_the_table_is_tried() -> None:
    tried = {case_.name.split(".")[0] for cases in kernels().values() for case_ in cases}
    computing = {
        row.syntax.split(".")[0].split("{")[0]
        for row in computing_rows()
        if any(_computes(spelling, row) for spelling in sample(row, 1))
    }
    assert tried == computing
    assert sum(len(cases) for cases in kernels().values()) > 200
