"""An answer from elsewhere: the same LLVM IR compiled for this machine's CPU, and by LLVM's NVPTX target to PTX.

Each program is a function of one thread. On the CPU it is called for every thread; as PTX it is a kernel, read by our parser and run by
both engines. LLVM knows nothing of our instruction table, and what it makes of a `select`, a saturating addition or a loop is
its own choice of instructions.
"""

from __future__ import annotations

import ctypes
import random
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest
from ptx_harness import ENGINE_NAMES, run

PROGRAMS = 24
STEPS = 24
THREADS = 64
WORDS = 8  # of 64 bits: what a thread reads, and as many that it writes
WIDTHS = (8, 16, 32, 64)


class Writer:
    """Writes one random function in LLVM IR: ``void work(ptr in, ptr out)``, on values of i8 to i64, float and double."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {kind: [] for kind in (*(f"i{w}" for w in WIDTHS), "i1", "float", "double")}
        self.declared: set[str] = set()
        self.count = 0

    def new(self, kind: str, text: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {text}")
        self.values[kind].append(name)
        return name

    def pick(self, kind: str) -> str:
        if kind[0] == "i" and kind != "i1" and self.choose.random() < 0.2:
            width = int(kind[1:])
            return str(
                self.choose.choice([0, 1, -1, 2, 7, 1 << (width - 2), -(1 << (width - 1)), (1 << (width - 1)) - 1])
            )
        return self.choose.choice(self.values[kind][-6:])

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        self.declared.add(f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})")
        return self.new(result, f"call {result} @{name}({', '.join(' '.join(each) for each in arguments)})")

    def integer(self) -> None:
        kind = f"i{self.choose.choice(WIDTHS)}"
        width, a, b, c = int(kind[1:]), self.pick(kind), self.pick(kind), self.pick(kind)
        which = self.choose.randrange(9)
        if which < 2:
            self.new(kind, f"{self.choose.choice('add sub mul and or xor'.split())} {kind} {a}, {b}")
        elif which == 2:  # in range, because LLVM leaves all else undefined
            amount = self.new(kind, f"and {kind} {b}, {width - 1}")
            self.new(kind, f"{self.choose.choice('shl lshr ashr'.split())} {kind} {a}, {amount}")
        elif which == 3:
            divisor = self.new(kind, f"or {kind} {b}, 1")
            dividend = self.new(kind, f"lshr {kind} {a}, 1")  # the most negative number divided by -1 is undefined
            self.new(kind, f"{self.choose.choice('udiv urem sdiv srem'.split())} {kind} {dividend}, {divisor}")
        elif which == 4:
            name = self.choose.choice(["sadd.sat", "uadd.sat", "ssub.sat", "usub.sat", "smin", "smax", "umin", "umax"])
            self.call(f"llvm.{name}.{kind}", kind, (kind, a), (kind, b))
        elif which == 5:
            self.call(f"llvm.{self.choose.choice(['fshl', 'fshr'])}.{kind}", kind, (kind, a), (kind, b), (kind, c))
        elif which == 6:
            name = self.choose.choice(["ctpop", "bitreverse"] + ["bswap"] * (width > 8))
            self.call(f"llvm.{name}.{kind}", kind, (kind, a))
        elif which == 7:
            name = self.choose.choice(["ctlz", "cttz", "abs"])
            self.call(f"llvm.{name}.{kind}", kind, (kind, a), ("i1", "false"))
        else:
            self.new(kind, f"select i1 {self.pick('i1')}, {kind} {a}, {kind} {b}")

    def floating(self) -> None:
        kind = self.choose.choice(["float", "double"])
        suffix = {"float": "f32", "double": "f64"}[kind]
        a, b, c = self.pick(kind), self.pick(kind), self.pick(kind)
        which = self.choose.randrange(6)
        if which < 3:
            self.new(kind, f"{self.choose.choice('fadd fsub fmul fdiv'.split())} {kind} {a}, {b}")
        elif which == 3:
            self.call(f"llvm.fma.{suffix}", kind, (kind, a), (kind, b), (kind, c))
        elif which == 4:
            name = self.choose.choice(
                ["sqrt", "fabs", "floor", "ceil", "trunc", "rint", "minnum", "maxnum", "copysign"]
            )
            more = []
            # LLVM leaves open which of two zeros is the smaller one, and the sign of a NaN.
            if name in ("minnum", "maxnum"):
                more = [(kind, self.choose.choice(["1.5", "-2.0", "0x7FF0000000000000"]))]
            elif name == "copysign":
                more = [(kind, self.new(kind, f"sitofp i32 {self.pick('i32')} to {kind}"))]
            self.call(f"llvm.{name}.{suffix}", kind, (kind, a), *more)
        else:
            self.new(kind, f"select i1 {self.pick('i1')}, {kind} {a}, {kind} {b}")

    def conversion(self) -> None:
        which = self.choose.randrange(5)
        if which == 0:
            small, large = sorted(self.choose.sample(WIDTHS, 2))
            if self.choose.random() < 0.5:
                self.new(
                    f"i{large}", f"{self.choose.choice(['zext', 'sext'])} i{small} {self.pick(f'i{small}')} to i{large}"
                )
            else:
                self.new(f"i{small}", f"trunc i{large} {self.pick(f'i{large}')} to i{small}")
        elif which == 1:
            source, target = f"i{self.choose.choice(WIDTHS)}", self.choose.choice(["float", "double"])
            self.new(target, f"{self.choose.choice(['sitofp', 'uitofp'])} {source} {self.pick(source)} to {target}")
        elif which == 2:
            source, target = self.choose.choice([("float", "f32"), ("double", "f64")]), self.choose.choice((32, 64))
            sign = self.choose.choice("su")
            self.call(f"llvm.fpto{sign}i.sat.i{target}.{source[1]}", f"i{target}", (source[0], self.pick(source[0])))
        elif which == 3:
            if self.choose.random() < 0.5:
                self.new("double", f"fpext float {self.pick('float')} to double")
            else:
                self.new("float", f"fptrunc double {self.pick('double')} to float")
        else:
            kind = f"i{self.choose.choice(WIDTHS)}"
            self.new(
                "i1",
                f"icmp {self.choose.choice('eq ne slt sle sgt sge ult ule ugt uge'.split())} {kind} {self.pick(kind)}, {self.pick(kind)}",
            )
            kind = self.choose.choice(["float", "double"])
            predicate = self.choose.choice("oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split())
            self.new("i1", f"fcmp {predicate} {kind} {self.pick(kind)}, {self.pick(kind)}")

    def loop(self) -> None:
        """A loop whose number of turns the thread's data decide, with a branch in it."""
        self.count += 1
        tag, a, b = f"l{self.count}", self.pick("i32"), self.pick("i32")
        turns = self.new("i32", f"and i32 {a}, 7")
        before = f"{tag}.before"
        self.lines += [f"br label %{before}", f"{before}:", f"br label %{tag}", f"{tag}:"]
        self.lines += [
            f"%{tag}.i = phi i32 [ 0, %{before} ], [ %{tag}.next, %{tag}.join ]",
            f"%{tag}.x = phi i32 [ {b}, %{before} ], [ %{tag}.y, %{tag}.join ]",
            f"%{tag}.m = mul i32 %{tag}.x, 1103515245", f"%{tag}.s = add i32 %{tag}.m, 12345", f"%{tag}.c = icmp slt i32 %{tag}.s, {a}",
            f"br i1 %{tag}.c, label %{tag}.then, label %{tag}.join", f"{tag}.then:", f"%{tag}.t = xor i32 %{tag}.s, %{tag}.i",
            f"br label %{tag}.join", f"{tag}.join:", f"%{tag}.y = phi i32 [ %{tag}.t, %{tag}.then ], [ %{tag}.s, %{tag} ]",
            f"%{tag}.next = add i32 %{tag}.i, 1", f"%{tag}.more = icmp ult i32 %{tag}.i, {turns}",
            f"br i1 %{tag}.more, label %{tag}, label %{tag}.done", f"{tag}.done:",
        ]  # fmt: skip
        self.values["i32"].append(f"%{tag}.y")

    def body(self) -> str:
        """The function's text."""
        kinds = ["i64", "i64", "i32", "i16", "i8", "float", "double", "double"]
        for word, kind in enumerate(kinds):
            place = f"%p{word}"
            self.lines.append(f"{place} = getelementptr i64, ptr %in, i64 {word}")
            self.new(kind, f"load {kind}, ptr {place}, align 8")
        self.new("i1", f"icmp slt i64 {self.values['i64'][0]}, {self.values['i64'][1]}")
        for _ in range(STEPS):
            self.choose.choice([self.integer, self.integer, self.floating, self.conversion])()
        self.loop()
        for _ in range(STEPS // 3):
            self.choose.choice([self.integer, self.floating, self.conversion])()
        for word, kind in enumerate(kinds):
            place = f"%q{word}"
            self.lines.append(f"{place} = getelementptr i64, ptr %out, i64 {word}")
            self.lines.append(
                f"store {kind} {self.values[kind][-1 - (word % 2) * (len(self.values[kind]) > 1)]}, ptr {place}, align 8"
            )
        return "\n".join(self.lines)


@cache
def programs(seed: int) -> tuple[str, str]:
    """The same program as a function of the CPU and as PTX."""
    writer = Writer(seed)
    body, declared = writer.body(), "\n".join(sorted(writer.declared))
    return f"{declared}\ndefine void @work(ptr %in, ptr %out) {{\n{body}\nret void\n}}", _to_ptx(declared, body)


def _to_ptx(declared: str, body: str) -> str:
    text = f"""target triple = "nvptx64-nvidia-cuda"
{declared}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @work(ptr addrspace(1) %inputs, ptr addrspace(1) %outputs) {{
%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
%wide = zext i32 %tid to i64
%mine = mul i64 %wide, {8 * WORDS}
%near = getelementptr i8, ptr addrspace(1) %inputs, i64 %mine
%far = getelementptr i8, ptr addrspace(1) %outputs, i64 %mine
%in = addrspacecast ptr addrspace(1) %near to ptr
%out = addrspacecast ptr addrspace(1) %far to ptr
br label %start
start:
{body}
ret void
}}"""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu="sm_80", features="+ptx70", opt=2)
    return machine.emit_assembly(llvm.parse_assembly(text))


def on_the_cpu(text: str, inputs: np.ndarray) -> np.ndarray:
    """What the CPU makes of each thread's words."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    outputs = np.zeros_like(inputs)
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("work"))
        for place in range(len(inputs)):
            work(inputs[place].ctypes.data, outputs[place].ctypes.data)
    return outputs


def _inputs(seed: int) -> np.ndarray:
    """Numbers of all sizes; floats that are mostly moderate, sometimes special."""
    chooser = np.random.default_rng(seed)
    words = chooser.integers(0, 2**64, (THREADS, WORDS), np.uint64) >> chooser.integers(
        0, 64, (THREADS, WORDS), np.uint64
    )
    words = np.where(chooser.random((THREADS, WORDS)) < 0.3, ~words, words)
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 2.0**-140, 1e38, 2.0**31, -(2.0**63), 1.5])
    for place in range(5, WORDS):
        numbers = chooser.normal(size=THREADS) * 10.0 ** chooser.integers(-3, 12, THREADS)
        numbers = np.where(chooser.random(THREADS) < 0.3, chooser.choice(special, THREADS), numbers)
        words[:, place] = numbers.astype(np.float32).view(np.uint32) if place == 5 else numbers.view(np.uint64)
    return words


def _as_canonical(words: np.ndarray) -> np.ndarray:
    """The same words with one NaN for all: CPUs hand payloads on."""
    words = words.copy()
    singles, doubles = words[:, 5].astype(np.uint32).view(np.float32), words[:, 6:].view(np.float64)
    words[:, 5] = np.where(np.isnan(singles), 0x7FC00000, words[:, 5])
    words[:, 6:] = np.where(np.isnan(doubles), 0x7FF8 << 48, words[:, 6:])
    return words


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_llvm_agrees(seed: int) -> None:
    native, ptx = programs(seed)
    inputs = _inputs(seed)
    with np.errstate(all="ignore"):
        wanted = _as_canonical(on_the_cpu(native, inputs))
    for engine in ENGINE_NAMES:
        found = np.zeros_like(inputs)
        run(engine, ptx, inputs, found, block=THREADS)
        found = _as_canonical(found)
        differs = np.argwhere(found != wanted)
        assert not len(differs), (
            f"{engine}, program {seed}: thread {differs[0][0]} gives {found[tuple(differs[0])]:#x} in word {differs[0][1]}, the CPU "
            f"{wanted[tuple(differs[0])]:#x}\n{native}\n{ptx}"
        )
