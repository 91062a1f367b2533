"""Fuzzing of single instructions: any form of the table with operands of any kind, on both engines and under the check.

Each case is a kernel of one instruction, whose operands mostly fit. It may be refused (a `GpulabError`); else the engines must
do the same, and nothing else than a `GpulabError` may come of it, above all no crash. Cases run in processes of their own.
Run it as ``python tools/fuzz_forms.py --cases 20000``; ``--first`` begins elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fuzz import spelling

from gpulab.emulator import ENGINES, Memory, RunOptions, load, place_variables
from gpulab.emulator.checking.run import check
from gpulab.errors import GpulabError
from gpulab.launch import LaunchConfig
from gpulab.ptx import parse
from gpulab.ptx.opcodes import Form, _forms
from gpulab.ptx.roles import Role
from gpulab.ptx.table import rows
from gpulab.ptx.types import TYPE_BYTES

THREADS = 4
KERNEL = """
.version 8.8
.target sm_100
.address_size 64
.global .align 16 .b8 global[256];
.func (.reg .b32 q) function(.reg .b32 w) { mov.u32 q, w; ret; }
.visible .entry k(.param .u64 a) {
.reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
.reg .b128 %q<9>; .shared .align 16 .b8 tile[512]; .local .align 16 .b8 own[64];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p3, %r1, 3; mov.u64 %rd4, %rd1;
INSTRUCTION
T: .branchtargets L;
L: ret;
}
"""
REGISTERS = {1: "%b", 2: "%rs", 4: "%r", 8: "%rd", 16: "%q"}
REALS = {"f32": "%f", "f64": "%fd"}
ADDRESSES = ["[%rd1]", "[%rd1+8]", "[%r1]", "[tile]", "[global]", "[tile+4]"]
CALLED = ["(%r1)", "function", "(%rd1)", "%rd1"]
ODD = """
%p1 %rs1 %r1 %rd1 %f1 %fd1 %q1 _ 0 1 -1 1.5 -0.0 0f3F800000 0d3FF0000000000000 99999999999999999999999999 -9223372036854775809
2147483648 4294967295 %tid.x %laneid %clock64 %clock %lanemask_lt %ntid.y %envreg1 %globaltimer %smid WARP_SZ global global+8
tile own a L T k function !%p1 {%r1,%r2} {%rs1,%rs2,%rs3,%rs4} {%r1} {} {1,2} {%f1,%f2,%f3,%f4} {global,%r1} {%p1,%p2} %r1|%p1
%p1|%p2 _|%p1 [%rd1] [%r1+4] [global] [tile] [own] [a] [0] [4096] [-8] [%f1] [%p1] [%rd1+99999999999] [%rd1,{%r1}]
""".split()


def register(type_name: str, chance: random.Random, number: int = 0) -> str:
    """A register that a type fits into."""
    number = number or chance.randrange(1, 8)
    if type_name == "pred":
        return f"%p{number}"
    if type_name in REALS and chance.random() < 0.7:
        return f"{REALS[type_name]}{number}"
    return f"{REGISTERS[TYPE_BYTES.get(type_name, 4)]}{number}"


def fitting(role: Role, form: Form, chance: random.Random) -> str:
    """An operand that mostly fits."""
    type_name = role.type
    count = form.vector if role.shape == "vector" and form.vector > 1 else role.count if role.shape == "fragment" else 0
    if count:
        return f"{{{', '.join(register(type_name, chance, number + 1) for number in range(count))}}}"
    if role.shape in ("address", "call"):
        return chance.choice(ADDRESSES if role.shape == "address" else CALLED)
    if role.shape in ("label", "list"):
        return "L" if role.shape == "label" else "T"
    if type_name == "imm":
        return str(chance.choice([0, 1, 4, 8, 16]))
    if not role.written and chance.random() < 0.15:
        return "1.5" if type_name in REALS else str(chance.choice([0, 1, 7, 31, -1]))
    beside = "|%p7" if role.shape == "pair" and chance.random() < 0.5 else ""
    return register(type_name, chance) + beside


def instruction(number: int) -> str | None:
    """The instruction of a case; None for a spelling that is no form."""
    chance = random.Random(number)
    row = chance.choice([row for entries in rows().values() for row in entries])
    spelled = spelling(row, chance)
    opcode, *modifiers = spelled.split(".")
    forms = _forms(opcode, tuple(modifiers))
    if not forms:
        return None
    form = chance.choice(forms)
    operands = [fitting(role, form, chance) for role in form.roles if not role.optional or chance.random() < 0.5]
    for _ in range(chance.choice([0, 1, 1, 1, 2])):
        if operands:
            operands[chance.randrange(len(operands))] = chance.choice(ODD)
    if chance.random() < 0.04:
        operands.append(chance.choice(ODD))
    return f"{chance.choice(['', '', '', '@%p3 ', '@!%p4 '])}{spelled} {', '.join(operands)};"


def outcome(name: str, line: str) -> str:
    """What one engine, or the check, makes of a kernel with one instruction."""
    array, memory, module = np.arange(64, dtype=np.uint64), Memory(), parse(KERNEL.replace("INSTRUCTION", line))
    program, symbols = load(module, "k"), place_variables(module, memory)
    parameters = memory.adopt(array).address.to_bytes(8, "little")
    run = check if name == "check" else ENGINES[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run(program, LaunchConfig.of(1, THREADS), parameters, memory, symbols, RunOptions(time_limit_s=2))
    except GpulabError as error:
        return f"{type(error).__name__}: {error}"
    return array.tobytes().hex()


def problems(line: str, outcomes: Counter[str]) -> Iterator[str]:
    """What is wrong with a case."""
    found = {}
    for name in (*ENGINES, "check"):
        try:
            found[name] = outcome(name, line)
        except GpulabError as error:
            outcomes[type(error).__name__] += 1
            return  # refused
        except Exception:  # noqa: BLE001 (that is what is looked for)
            yield f"{name}: {traceback.format_exc(limit=-2)}"
    outcomes["ran"] += 1
    if len({found[name] for name in ENGINES if name in found}) > 1:
        yield f"the engines differ: { ({name: found[name][:200] for name in ENGINES}) }"


def worker(first: int, last: int, log: Path) -> None:
    """Run some cases; `log` always names the one that runs."""
    outcomes: Counter[str] = Counter()
    for number in range(first, last):
        log.write_text(str(number))
        line = instruction(number)
        if line is not None:
            for problem in problems(line, outcomes):
                print(f"case {number}: {line}\n{problem}", flush=True)
    print(f"{sum(outcomes.values())} cases: {dict(outcomes.most_common())}", flush=True)


def main() -> None:
    """Run cases in a process, and go on in another one behind a case that crashes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    first, last = options.first, options.first + options.cases
    if options.log:
        worker(first, last, options.log)
        return
    crashed = 0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "case"
        while first < last:
            log.write_text(str(first))
            command = [sys.executable, __file__, "--first", str(first), "--cases", str(last - first), "--log", str(log)]
            if (code := subprocess.run(command, check=False).returncode) == 0:
                break
            number = int(log.read_text())
            print(f"case {number}: {instruction(number)}\nthe process ended with {code}", flush=True)
            crashed, first = crashed + 1, number + 1
    sys.exit(1 if crashed else 0)


if __name__ == "__main__":
    main()
