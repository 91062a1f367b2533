"""The engines agree on every form of loads, stores and atomics: each row of the table, in every state space that it has."""

from __future__ import annotations

import itertools
import random
import re
from functools import cache

import numpy as np
import pytest
from form_matrix import all_rows, form_of, sample
from ptx_harness import ENGINE_NAMES, kernel, run

from gpulab.ptx.opcodes import Form
from gpulab.ptx.types import TYPE_BYTES

FORMS_PER_ROW = 4
FORMS_PER_KERNEL = 24
CELL = 16  # bytes that a lane has in each space
SLOT = 64  # bytes that a lane writes of each form: up to 32 of destinations, then its cell
OPCODES = ("ld", "ldu", "st", "atom", "red")
REGISTERS = {1: "b16", 2: "b16", 4: "b32", 8: "b64", 16: "b128"}

PROLOGUE = f"""
    ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [values]; ld.param.u64 %rd3, [out]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, {CELL}, %rd1; mad.wide.u32 %rd2, %r1, {CELL}, %rd2; mad.wide.u32 %rd3, %r1, {SLOT}, %rd3;
    mov.u64 %rd4, tile; mad.wide.u32 %rd4, %r1, {CELL}, %rd4; mov.u64 %rd5, table; mad.wide.u32 %rd5, %r1, {CELL}, %rd5;
"""
PLACES = {"global": "%rd1", "generic": "%rd1", "shared": "%rd4", "local": "mine", "const": "%rd5", "param": "whole"}


@cache
def forms() -> dict[str, list[tuple[str, Form]]]:
    """Spellings with their forms, in groups; parameters of calls have tests of their own."""
    chosen = [
        (spelling, form_of(spelling, row))
        for row in all_rows()
        if re.match(r"\w+", row.syntax)[0] in OPCODES
        for spelling in sample(row, FORMS_PER_ROW)
    ]
    usable = [
        (spelling, form)
        for spelling, form in chosen
        if form.space != "param" or (form.opcode == "ld" and "func" not in spelling)
    ]
    groups = [usable[start : start + FORMS_PER_KERNEL] for start in range(0, len(usable), FORMS_PER_KERNEL)]
    return {f"{group[0][0]} to {group[-1][0]}": group for group in groups}


def _body(spelling: str, form: Form, number: int) -> str:
    """Fill the lane's cell, do it, and write what came and what the cell holds then."""
    place, size, lines = PLACES[form.space or ""], TYPE_BYTES[form.type or ""], []
    names = (f"%x{count}" for count in itertools.count())

    def registers(count: int, source: str | None = None) -> list[str]:
        found = list(itertools.islice(names, count))
        lines.append(f".reg .{REGISTERS[size]} {', '.join(found)};")
        for index, name in enumerate(found):
            kind = "b" if size > 1 else "u"
            lines.append(f"ld.global.{kind}{8 * size} {name}, [{source}+{size * index}];" if source else "")
        return found

    def group(found: list[str]) -> str:
        return found[0] if form.vector == 1 else "{" + ", ".join(found) + "}"

    fills = form.space in ("shared", "local", "global", "generic")
    space = "" if form.space == "generic" else f".{form.space}"
    if fills:
        lines.append(
            f"ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%rd2]; st{space}.v4.b32 [{place}], {{%r2, %r3, %r4, %r5}};"
        )
    arguments, results = [], []
    for role in form.roles:
        if role.name == "h":
            arguments += ["%rd6"] if form.cache_hint else []
        elif role.shape == "address":
            arguments.append(f"[{place}]")
        elif role.written:
            results = registers(form.vector)
            arguments.append(group(results))
        else:
            arguments.append(
                group(registers(form.vector, "%rd2" if form.operation == "cas" and role.name == "b" else "%rd7"))
            )
    lines.append(f"{spelling} {', '.join(arguments)};")
    for index, name in enumerate(results):
        lines.append(f"st.global.b{8 * max(size, 2)} [%rd3+{max(size, 2) * index}], {name};")
    if fills:
        lines.append(
            f"ld{space}.v4.b32 {{%r2, %r3, %r4, %r5}}, [{place}]; st.global.v4.b32 [%rd3+32], {{%r2, %r3, %r4, %r5}};"
        )
    return "{\n" + "\n".join(filter(None, lines)) + f"\nadd.u64 %rd3, %rd3, {SLOT * 32}; }}\n"


@pytest.mark.parametrize("name", forms())
def test_engines_agree_on_every_form_of_memory(name: str) -> None:
    group, chooser = forms()[name], random.Random(name)
    # Finite floats in every type: the sign is 0, and no exponent is full.
    cells, values, others = (np.array([chooser.randrange(64) for _ in range(32 * CELL)], np.uint8) for _ in range(3))
    table = ", ".join(str(chooser.randrange(64)) for _ in range(32 * CELL))
    body = PROLOGUE + "ld.param.u64 %rd7, [others]; mad.wide.u32 %rd7, %r1, 16, %rd7; mov.u64 %rd6, 0;\n"
    body += "".join(_body(spelling, form, number) for number, (spelling, form) in enumerate(group))
    text = kernel(
        "u64 cells, u64 values, u64 out, u64 others, align 16 .b8 whole[16]",
        body,
        variables=f".shared .align 16 .b8 tile[{32 * CELL}]; .local .align 16 .b8 mine[{CELL}];",
        module=f".const .align 16 .b8 table[{32 * CELL}] = {{{table}}};",
    )
    found = []
    for engine in ENGINE_NAMES:
        out = np.zeros((len(group), 32, SLOT), np.uint8)
        mine = cells.copy()
        whole = np.frombuffer(bytes(range(16)), "V16")[0]
        counters = run(engine, text, mine, values, out, others, whole).counters
        found.append((out, mine, counters))
    (wanted, left, counted), (got, kept, counters) = found
    differing = [spelling for (spelling, _), a, b in zip(group, wanted, got, strict=True) if not np.array_equal(a, b)]
    assert not differing
    assert np.array_equal(left, kept)
    assert not counters.differences(counted)
    assert all(each.any() for each in wanted)
