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
SIZES |= {"f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


# The lane's number comes from memory: to an engine that knows strides the addresses then have none, which is the shortest
# code for so many loads.
PROLOGUE = """    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r1, [%rd2+{}];
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
    arrays, bodies = [], []
    for case_ in cases:
        bodies.append(_body(case_, len(arrays)))
        arrays += [_column(case_, place, each) for place, each in enumerate(case_.sources)]
        arrays += [np.zeros(LANES, f"u{SIZES[each]}") for each in case_.results]
    arrays.append(np.arange(LANES, dtype=np.uint32))
    pool = np.concatenate([_padded(array) for array in arrays])
    offsets = np.cumsum([0, *(len(_padded(array)) for array in arrays)])
    text = kernel("u64 k_param_0", PROLOGUE.format(offsets[-2]) + "".join(body.format(*offsets) for body in bodies))
    run(engine, text, pool, options=RunOptions(count=False))
    found, place = [], 0
    for case_ in cases:
        place += len(case_.sources)
        results = []
        for each in case_.results:
            raw = pool[offsets[place] : offsets[place] + LANES * SIZES[each]]
            results.append(raw.view(f"u{SIZES[each]}").copy())
            place += 1
        found.append(results)
    return found


def _padded(array: np.ndarray) -> np.ndarray:
    raw = array.view(np.uint8)
    return np.concatenate([raw, np.zeros(-len(raw) % 256, np.uint8)])


def _column(case_: Case, place: int, type_name: str) -> np.ndarray:
    """The input of each lane; lanes without a row repeat the last one."""
    rows = [*case_.rows, *[case_.rows[-1]] * (LANES - len(case_.rows))]
    return np.array([pattern(row[place], type_name) for row in rows], f"u{SIZES[type_name]}")


def _register(type_name: str) -> str:
    return {1: "b16", 2: "b16", 4: "b32", 8: "b64"}[SIZES[type_name]]


def _body(case_: Case, first: int) -> str:
    """Load the sources, run the instruction, store the results; ``{n}`` is the offset of array n."""
    names, lines = {}, ["{{"]
    for place, (letter, each) in enumerate(zip("abcs", case_.sources, strict=False)):
        names[letter] = f"%in{place}"
        lines.append(_load(f"%in{place}", each, f"{{{first + place}}}"))
    for place, (letter, each) in enumerate(zip("de", case_.results, strict=False)):
        names[letter] = f"%out{place}"
        kind = "pred" if each == "pred" else _register(each)
        lines.append(f".reg .{kind} %out{place};")
    text = case_.text
    # From the inside out: "{{d}, {e}}" is a pack of two destinations.
    for letter, name in names.items():
        text = text.replace("{" + letter + "}", name)
    lines.append(text.replace("{", "{{").replace("}", "}}"))
    for place, each in enumerate(case_.results):
        lines.append(_store(f"%out{place}", each, f"{{{first + len(case_.sources) + place}}}"))
    return "    " + "\n    ".join([*lines, "}}"]) + "\n"


def _load(name: str, type_name: str, offset: str) -> str:
    address = f"mad.wide.u32 %rd2, %r1, {SIZES[type_name]}, %rd1;"
    if type_name == "pred":
        return f"{address} ld.global.u8 %rs1, [%rd2+{offset}]; .reg .pred {name}; setp.ne.b16 {name}, %rs1, 0;"
    unsigned = f"{'s' if type_name == 's8' else 'u'}{8 * SIZES[type_name]}"
    return f"{address} .reg .{_register(type_name)} {name}; ld.global.{unsigned} {name}, [%rd2+{offset}];"


def _store(name: str, type_name: str, offset: str) -> str:
    address = f"mad.wide.u32 %rd2, %r1, {SIZES[type_name]}, %rd1;"
    if type_name == "pred":
        return f"{address} selp.b16 %rs1, 1, 0, {name}; st.global.u8 [%rd2+{offset}], %rs1;"
    return f"{address} st.global.u{8 * SIZES[type_name]} [%rd2+{offset}], {name};"


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
