"""NVIDIA's assembler takes what the table has: a form that ptxas refuses must be refused here, too."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gpulab.ptx.isa import SETS
from gpulab.ptx.opcodes import Form, _forms
from gpulab.ptx.table import Row, rows
from gpulab.ptx.types import TYPE_BYTES
from gpulab.toolchain import locate

# The newest capability that the installed ptxas knows; forms that it dropped, or has only for other ones, come below.
TARGET = "sm_100"
SPELLINGS_PER_ROW = 20
HEADER = f""".version 8.8
.target {TARGET}
.address_size 64
.visible .entry k(.param .align 16 .b8 parameter[64]) {{
.shared .align 16 .b8 tile[64]; .local .align 16 .b8 mine[64];
.reg .pred %p<20>; .reg .b8 %b<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b128 %q<20>;
"""
REGISTERS = {1: "%h", 2: "%h", 4: "%r", 8: "%rd", 16: "%q"}
# Their operands are labels, lists or pairs of registers that a generated line does not have.
SPECIAL = {"bra", "brx", "call", "ret", "exit"}
# A kernel's parameters can only be read; those of a call have no place in one line. Bytes want registers of one byte.
STORE_OF_PARAMETER = re.compile(r"st\..*param")
BYTES_IN_BYTES = re.compile(r"cvt\..*(\.[us]8\.bf16|\.bf16\.[us]8)$")


def refusals(lines: list[str], folder: Path) -> dict[str, str]:
    """Those of some instructions that ptxas refuses, with its words."""
    found: dict[str, str] = {}
    while True:
        left = [line for line in lines if line not in found]
        source = folder / "forms.ptx"
        source.write_text(HEADER + "\n".join(left) + "\nret; }\n")
        command = [str(locate.tool("ptxas")), f"-arch={TARGET}", "-O0", str(source), "-o", str(folder / "forms.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        complaints = re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr)
        first = HEADER.count("\n") + 1
        new = {left[int(n) - first]: words for n, words in complaints if 0 <= int(n) - first < len(left)}
        if not new:
            assert done.returncode == 0, done.stderr
            return found
        found |= new


def _words(row: Row) -> list[str]:
    """Spellings of a row, chosen at random but the same ones each time."""
    chooser, found = random.Random(row.syntax), {}
    for _ in range(2 * SPELLINGS_PER_ROW):
        spelled = re.sub(r"\{([^{}]*)\}", lambda part: part[1] if chooser.random() < 0.5 else "", row.syntax)
        spelled = re.sub(r"<([^>]*)>", lambda part: chooser.choice(_alternatives(part[1])), spelled)
        if any(each.syntax == row.syntax for each in _forms(*_split(spelled))):
            found[spelled] = True
    return list(found)[:SPELLINGS_PER_ROW]


@cache
def _alternatives(choice: str) -> list[str]:
    name, _, words = choice.partition(":")
    return " ".join(SETS.get(word, word) for word in (words or name).split()).split()


def _split(spelling: str) -> tuple[str, tuple[str, ...]]:
    opcode, *modifiers = spelling.split(".")
    return opcode, tuple(modifiers)


def _line(spelling: str, form: Form) -> str:
    numbers = itertools.count(1)

    def register(type_name: str) -> str:
        kind = "%p" if type_name == "pred" else REGISTERS[TYPE_BYTES[type_name]]
        return f"{kind}{next(numbers)}"

    def operand(name: str, type_name: str, shape: str, count: int) -> str:
        if shape == "address":
            return {"param": "[parameter]", "local": "[mine]"}.get(form.space or "", "[%rd1]")
        if type_name == "imm":
            return {"discard": "128", "applypriority": "128", "cp": "16"}.get(form.opcode, "3")
        if type_name == "size":
            return "4"
        if shape == "fragment":
            return "{" + ", ".join(register(type_name) for _ in range(count)) + "}"
        if name == "d" and form.opcode == "mbarrier" and "shared::cluster" in spelling:
            return "_"  # another block's barrier gives no state
        if shape == "pair":
            return f"{register(type_name)}|{register('pred')}"
        if shape == "vector" and form.vector > 1:
            return "{" + ", ".join(register(type_name) for _ in range(form.vector)) + "}"
        return register(type_name)

    roles = [role for role in form.roles if not role.optional or form.boolean or (role.name == "h" and form.cache_hint)]
    return f"{spelling} {', '.join(operand(role.name, role.type, role.shape, role.count) for role in roles)};"


@pytest.mark.skipif(locate.find_tool("ptxas") is None, reason="there is no ptxas on this machine")
def test_ptxas_takes_every_form_of_the_table(tmp_path: Path) -> None:
    lines = {}
    for row in itertools.chain.from_iterable(entries for opcode, entries in rows().items() if opcode not in SPECIAL):
        for spelling in _words(row):
            form = next(each for each in _forms(*_split(spelling)) if each.syntax == row.syntax)
            if not BYTES_IN_BYTES.search(spelling) and not STORE_OF_PARAMETER.match(spelling):
                lines[_line(spelling, form)] = row.syntax
    assert len(lines) > 1000
    refused = refusals(list(lines), tmp_path)
    assert not [f"{line} {words}   <- {lines[line]}" for line, words in refused.items()]


@pytest.mark.skipif(locate.find_tool("ptxas") is None, reason="there is no ptxas on this machine")
def test_cvt_has_exactly_the_forms_of_ptxas(tmp_path: Path) -> None:
    kinds = "u8 s32 u64 f16 bf16 f32 f64".split()
    roundings = ("", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi")
    spellings = {}
    for target, source in itertools.product(kinds, kinds):
        destination, operand = (REGISTERS[TYPE_BYTES[kind]] for kind in (target, source))
        for rounding, ftz, rest in itertools.product(
            roundings, ("", "ftz"), ("", "sat", "relu", "satfinite", "relu.satfinite")
        ):
            spelling = ".".join(filter(None, ("cvt", rounding, ftz, rest, target, source)))
            if not BYTES_IN_BYTES.search(spelling):
                spellings[f"{spelling} {destination}1, {operand}2;"] = spelling
    refused = refusals(list(spellings), tmp_path)
    taken = {spelling for line, spelling in spellings.items() if line not in refused}
    assert len(taken) > 250
    assert taken == {spelling for spelling in spellings.values() if _forms(*_split(spelling))}
