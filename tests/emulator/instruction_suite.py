"""Instruction tests as tables: one line an instruction, its inputs and the outputs that it must give.

`case("add.sat.s32", "s32 s32 -> s32", (2**31 - 1, 1, 2**31 - 1), …)`: each tuple is one lane, inputs first. Integers are
values or patterns; floats are values, or `Bits` for an exact pattern. A NaN as the expected value accepts any NaN.

All cases of a table become one kernel, so that an engine compiles once a table; each case is a test of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from ptx_harness import kernel, run

from gpulab.emulator import RunOptions

LANES = 32
SIZES = {"pred": 1, **{f"{kind}{bits}": bits // 8 for kind in "usb" for bits in (8, 16, 32, 64)}}
SIZES |= {"f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8, "u16x2": 4, "s16x2": 4, "f32x2": 8}
SIZES |= {"e4m3x2": 2, "e5m2x2": 2}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


# Each lane has a record of eight slots of 64 bits for each case: up to four sources, then up to two results.
SLOTS = 8
FIRST_RESULT = 4
# The lane's place comes from memory: to an engine that knows strides the addresses then have none, which is the shortest
# code for so many loads.
PROLOGUE = f"""    ld.param.u64 %rd1, [records]; ld.param.u64 %rd2, [places];
    mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd2; ld.global.u32 %r1, [%rd2]; mad.wide.u32 %rd1, %r1, {8 * SLOTS}, %rd1;
"""


class Bits(int):
    """The exact pattern of a value."""


@dataclass(frozen=True)
class Case:
    """One instruction with its lanes.

    Attributes
    ----------
    text : str
        With ``{d}``, ``{e}`` for destinations and ``{a}``, ``{b}``, ``{c}``, ``{s}`` for sources, in the order of `types`.
    sources, results : tuple of str
        PTX types.
    rows : tuple of tuple
        Inputs, then expected outputs.
    """

    name: str
    text: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    rows: tuple[tuple, ...]


def case(instruction: str, types: str, *rows: tuple, text: str | None = None) -> Case:
    """Make a case; words behind the opcode only name it; the operands are ``d, a, b, …`` unless `text` says otherwise."""
    sources, results = (tuple(part.split()) for part in types.split("->"))
    operands = ", ".join("{" + letter + "}" for letter in "dabcs"[: len(sources) + 1])
    assert all(len(row) == len(sources) + len(results) for row in rows), f"{instruction}: a row has the wrong length"
    assert 0 < len(rows) <= LANES
    opcode = instruction.partition(" ")[0]
    return Case(instruction, text or f"{opcode} {operands};", sources, results, rows)


def pattern(value: object, type_name: str) -> int:
    """A value as the pattern that stands in memory."""
    size = SIZES[type_name]
    if isinstance(value, float) and type_name in FLOATS:
        with np.errstate(over="ignore"):
            return int(FLOATS[type_name](value).view(f"u{size}"))
    if value != value:
        return 0x7FC0
    assert isinstance(value, (int, np.integer)), f"{value!r} needs Bits for type {type_name}"
    return int(value) & (1 << 8 * size) - 1


def is_nan(value: int, type_name: str) -> bool:
    """Whether a pattern is a NaN of its type."""
    limit = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}.get(type_name)
    sign = 1 << (8 * SIZES[type_name] - 1)
    return limit is not None and value & ~sign > limit


@cache
def outputs(engine: str, cases: tuple[Case, ...]) -> list[list[np.ndarray]]:
    """Run all cases in one kernel; for each the patterns of its results, 32 lanes."""
    records = np.zeros((len(cases), LANES, SLOTS), np.uint64)
    for record, case_ in zip(records, cases, strict=True):
        # Lanes without a row repeat the last one.
        rows = [*case_.rows, *[case_.rows[-1]] * (LANES - len(case_.rows))]
        for slot, type_name in enumerate(case_.sources):
            record[:, slot] = [pattern(row[slot], type_name) for row in rows]
    bodies = "".join(_body(case_, 8 * SLOTS * LANES * number) for number, case_ in enumerate(cases))
    text = kernel("u64 records, u64 places", PROLOGUE + bodies)
    run(engine, text, records, np.arange(LANES, dtype=np.uint32), options=RunOptions(count=False))
    return [
        [record[:, FIRST_RESULT + slot] & (1 << 8 * SIZES[each]) - 1 for slot, each in enumerate(case_.results)]
        for record, case_ in zip(records, cases, strict=True)
    ]


def _register(type_name: str) -> str:
    return "pred" if type_name == "pred" else {1: "b16", 2: "b16", 4: "b32", 8: "b64"}[SIZES[type_name]]


def _body(case_: Case, offset: int) -> str:
    """Load the sources from the lane's record, run the instruction, store the results."""
    lines = []
    for slot in range(0, len(case_.sources), 2):
        lines.append(f"ld.global.v2.b64 {{%rd{4 + slot}, %rd{5 + slot}}}, [%rd1+{offset + 8 * slot}];")
    text = case_.text
    for slot, (letter, each) in enumerate(zip("abcs", case_.sources, strict=False)):
        lines.append(f".reg .{_register(each)} %in{slot}; {_narrow(f'%in{slot}', f'%rd{4 + slot}', each)}")
        text = text.replace("{" + letter + "}", f"%in{slot}")
    # From the inside out: "{{d}, {e}}" is a pack of two destinations.
    for slot, (letter, each) in enumerate(zip("de", case_.results, strict=False)):
        lines.append(f".reg .{_register(each)} %out{slot};")
        text = text.replace("{" + letter + "}", f"%out{slot}")
    lines.append(text)
    for slot, each in enumerate(case_.results):
        lines.append(_widen(f"%rd{8 + slot}", f"%out{slot}", each))
    stored = "b64 [%rd1+{}], %rd8" if len(case_.results) == 1 else "v2.b64 [%rd1+{}], {{%rd8, %rd9}}"
    lines.append(f"st.global.{stored.format(offset + 8 * FIRST_RESULT)};")
    return "    {\n    " + "\n    ".join(lines) + "\n    }\n"


def _narrow(name: str, slot: str, type_name: str) -> str:
    """A source from its slot; bytes are extended in their 16-bit register as a load extends them."""
    if type_name == "pred":
        return f"setp.ne.b64 {name}, {slot}, 0;"
    if SIZES[type_name] == 8:
        return f"mov.b64 {name}, {slot};"
    return f"cvt.{'s' if type_name == 's8' else 'u'}{8 * SIZES[type_name]}.u64 {name}, {slot};"


def _widen(slot: str, name: str, type_name: str) -> str:
    if type_name == "pred":
        return f"selp.b64 {slot}, 1, 0, {name};"
    if SIZES[type_name] == 8:
        return f"mov.b64 {slot}, {name};"
    return f"cvt.u64.u{8 * SIZES[type_name]} {slot}, {name};"


def check(engine: str, cases: tuple[Case, ...], index: int) -> None:
    """Hold one case to its expected values."""
    case_, found = cases[index], outputs(engine, cases)[index]
    for lane, row in enumerate(case_.rows):
        for place, type_name in enumerate(case_.results):
            expected = row[len(case_.sources) + place]
            got = int(found[place][lane])
            wanted = pattern(expected, type_name)
            accepts_nan = isinstance(expected, float) and expected != expected
            same = is_nan(got, type_name) if accepts_nan else got == wanted
            assert same, (
                f"{case_.name} of {row[: len(case_.sources)]} must give {type_name} {expected} ({wanted:#x}), "
                f"but {engine} gave {got:#x}"
            )
