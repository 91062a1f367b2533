"""Follow the control flow of SASS for real: the truth that estimates of executed SASS are held against.

Integers, predicates and branches are computed for all lanes of each warp; what memory holds and floats are unknown, and a
branch that depends on them is refused. It knows just the instructions of capability 8.0 that the kernels of these tests
need, as NVIDIA's "CUDA Binary Utilities" names them; what they do was worked out from what ptxas makes of known PTX.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.sass import Code, Instruction

MASK = 0xFFFFFFFF
PARAMETERS_AT = 0x160
STEPS = 200_000
UNKNOWN = {
    "LDG": 1, "LDS": 1, "LDL": 1, "LD": 1, "FADD": 1, "FMUL": 1, "FFMA": 1, "FSEL": 1, "MUFU": 1, "I2F": 1, "F2I": 1,
    "SHFL": 1, "ATOMG": 1, "ATOMS": 1, "F2F": 1, "FMNMX": 1, "DADD": 2, "DMUL": 2, "DFMA": 2, "POPC": 1, "FLO": 1,
}  # fmt: skip
SILENT = {
    "STG",
    "STS",
    "STL",
    "ST",
    "RED",
    "BAR",
    "BSSY",
    "BSYNC",
    "NOP",
    "WARPSYNC",
    "YIELD",
    "MEMBAR",
    "BREAK",
    "BMOV",
}
COMPARISONS = {
    "EQ": "equal",
    "NE": "not_equal",
    "LT": "less",
    "LE": "less_equal",
    "GT": "greater",
    "GE": "greater_equal",
}

STRICT = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less", "GT": "greater", "GE": "greater"}


class UnknownFlow(Exception):
    """The control flow depends on what this walker does not compute."""


@dataclass
class Value:
    """A register or predicate of all lanes: values below 2**32 (or 0 and 1), and whether each is known."""

    of: np.ndarray
    known: np.ndarray


def parameters(values: Sequence[int | np.generic]) -> bytes:
    """A parameter buffer: Python ints are 8-byte pointers, NumPy scalars have their own width."""
    found = b""
    for value in values:
        data = struct.pack("<Q", value) if isinstance(value, int) else value.tobytes()
        found += b"\0" * (-len(found) % len(data)) + data
    return found


def walk(code: Code, grid: Sequence[int], block: Sequence[int], values: Sequence[int | np.generic]) -> np.ndarray:
    """Warps that execute each SASS instruction in a whole launch, int64."""
    bank = bytearray(PARAMETERS_AT + 4096)
    struct.pack_into("<6I", bank, 0, *block, *grid)
    data = parameters(values)
    bank[PARAMETERS_AT : PARAMETERS_AT + len(data)] = data
    counts = np.zeros(len(code.instructions), np.int64)
    threads = block[0] * block[1] * block[2]
    for index in range(grid[0] * grid[1] * grid[2]):
        place = (index % grid[0], index // grid[0] % grid[1], index // grid[0] // grid[1])
        for first in range(0, threads, 32):
            lanes = np.arange(first, min(first + 32, threads))
            counts += Warp(code, bytes(bank), place, lanes, block).run()
    return counts


class Warp:
    """One warp: registers by name, and where each lane is."""

    def __init__(self, code: Code, bank: bytes, place: Sequence[int], lanes: np.ndarray, block: Sequence[int]) -> None:
        self.code, self.bank, self.width = code, bank, len(lanes)
        self.special = {
            "SR_TID.X": lanes % block[0], "SR_TID.Y": lanes // block[0] % block[1],
            "SR_TID.Z": lanes // (block[0] * block[1]), "SR_LANEID": lanes % 32,
            "SR_CTAID.X": place[0], "SR_CTAID.Y": place[1], "SR_CTAID.Z": place[2],
        }  # fmt: skip
        self.registers: dict[str, Value] = {}
        self.at = np.zeros(self.width, np.int64)
        self.block_of = {index: each for each in code.blocks for index in range(each.start, each.stop)}

    def run(self) -> np.ndarray:
        counts = np.zeros(len(self.code.instructions), np.int64)
        for _ in range(STEPS):
            alive = self.at[self.at >= 0]
            if not len(alive):
                return counts
            here = int(alive.min())  # the lowest address first: lanes meet again behind what they parted for
            active = self.at == here
            counts[here] += 1
            self.step(here, active)
        raise AssertionError("this does not end")

    def step(self, here: int, active: np.ndarray) -> None:
        instruction, block = self.code.instructions[here], self.block_of[here]
        taken = active.copy()
        self.at[active] = here + 1
        if here + 1 == block.stop and block.successors:
            self.at[active] = self.code.blocks[block.successors[-1]].start
        if instruction.opcode in ("BRA", "EXIT"):
            for name in [instruction.guard, *instruction.operands[:-1]]:
                taken &= self.decided(name, active)
            self.at[taken] = -1 if instruction.opcode == "EXIT" else self.code.blocks[block.successors[0]].start
        elif instruction.opcode not in SILENT:
            if instruction.guard:
                guard = self.predicate(instruction.guard.removeprefix("@"))
                taken = active & (guard.of.astype(bool) | ~guard.known)
                if not guard.known[active].all():
                    self.forget(instruction, taken)
                    return
            self.execute(instruction, taken)

    def decided(self, name: str, active: np.ndarray) -> np.ndarray:
        if not name:
            return active
        value = self.predicate(name.removeprefix("@"))
        if not value.known[active].all():
            raise UnknownFlow(name)
        return value.of.astype(bool)

    # ---- operands

    def constant(self, value: int) -> Value:
        return Value(np.full(self.width, value & MASK, np.int64), np.ones(self.width, bool))

    def predicate(self, name: str) -> Value:
        bare = name.removeprefix("!")
        value = self.constant(1) if bare in ("PT", "UPT") else self.registers.get(bare, self.constant(0))
        return Value(1 - value.of, value.known) if name != bare else value

    def operand(self, text: str, high: bool = False) -> Value:
        text = text.replace(".reuse", "")
        sign = text[0] if text[0] in "-~" and not re.match(r"-(0x)?[\d.]", text) else ""
        value = self.plain(text.removeprefix(sign), high)
        if sign == "-":
            return Value(-value.of & MASK, value.known)
        return Value(~value.of & MASK, value.known) if sign else value

    def plain(self, text: str, high: bool) -> Value:
        if text in ("RZ", "URZ", "SRZ"):
            return self.constant(0)
        if found := re.fullmatch(r"(U?R)(\d+)", text):
            name = f"{found[1]}{int(found[2]) + high}"
            return self.registers.get(name, self.constant(0))
        if found := re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text):
            return self.constant(struct.unpack_from("<I", self.bank, int(found[1], 16) + 4 * high)[0])
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            return self.constant(int(text, 16) >> (32 * high))
        return Value(np.zeros(self.width, np.int64), np.zeros(self.width, bool))

    def write(self, name: str, value: Value, on: np.ndarray) -> None:
        if name.lstrip("U") in ("RZ", "PT"):
            return
        old = self.registers.get(name, self.constant(0))
        self.registers[name] = Value(np.where(on, value.of & MASK, old.of), np.where(on, value.known, old.known))

    def forget(self, instruction: Instruction, on: np.ndarray) -> None:
        nothing = Value(np.zeros(self.width, np.int64), np.zeros(self.width, bool))
        wide = 4 if "128" in instruction.modifiers else 2 if {"64", "WIDE"} & set(instruction.modifiers) else 1
        count = max(wide, UNKNOWN.get(instruction.opcode, 1))
        for text in instruction.operands[:2]:
            if found := re.fullmatch(r"(U?R)(\d+)", text):
                for more in range(count):
                    self.write(f"{found[1]}{int(found[2]) + more}", nothing, on)
                break
        for text in instruction.operands[:2]:
            if re.fullmatch(r"U?P\d", text):
                self.write(text, nothing, on)

    # ---- instructions

    def execute(self, instruction: Instruction, on: np.ndarray) -> None:
        opcode = instruction.opcode
        if opcode == "FCHK":  # ordinary operands
            self.write(instruction.operands[0], self.constant(0), on)
            return
        if opcode in UNKNOWN or opcode == "FSETP" or (opcode == "HFMA2" and "-RZ" not in instruction.operands):
            self.forget(instruction, on)
            return
        name = opcode.removeprefix("U") if opcode not in ("ULDC",) else opcode
        method = getattr(self, f"do_{name.lower()}", None)
        if method is None:
            raise UnknownFlow(instruction.text)
        method(instruction.modifiers, list(instruction.operands), on)

    def put(self, name: str, values: np.ndarray, sources: Sequence[Value], on: np.ndarray) -> None:
        known = np.logical_and.reduce([source.known for source in sources])
        self.write(name, Value(values, known), on)

    def do_mov(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        self.write(operands[0], self.operand(operands[1]), on)

    def do_s2r(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        self.write(operands[0], Value(np.zeros(self.width, np.int64) + self.special[operands[1]], on | True), on)

    def do_cs2r(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        for name in (operands[0], after(operands[0])):
            self.write(name, self.constant(0), on)

    def do_uldc(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        self.write(operands[0], self.operand(operands[1]), on)
        if "64" in modifiers:
            self.write(after(operands[0]), self.operand(operands[1], high=True), on)

    def do_hfma2(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        high, low = (int(np.float16(each).view(np.uint16)) for each in operands[3:5])
        self.write(operands[0], self.constant(high << 16 | low), on)

    def do_imad(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        a, b, c = (self.operand(text) for text in operands[1:4])
        x, y = (a.of, b.of) if "U32" in modifiers and {"WIDE", "HI"} & set(modifiers) else (signed(a.of), signed(b.of))
        carry = self.predicate(operands[4]) if "X" in modifiers else self.constant(0)
        if "WIDE" in modifiers:
            upper = self.operand(operands[3], high=True)
            total = x * y + (upper.of << 32 | c.of)
            self.put(operands[0], total, (a, b, c), on)
            self.put(after(operands[0]), total >> 32, (a, b, c, upper), on)
        elif "HI" in modifiers:
            upper = self.operand(operands[3], high=True)
            self.put(operands[0], x * y + (upper.of << 32 | c.of) >> 32, (a, b, c, upper), on)
        else:
            self.put(operands[0], x * y + c.of + carry.of, (a, b, c, carry), on)

    def do_iadd3(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        name, *rest = operands
        outs = [rest.pop(0) for _ in range(2) if re.fullmatch(r"U?P(\d|T)", rest[0])]
        terms = [self.operand(text) for text in rest[:3]]
        # Minus x is (not x) + 1, so minus zero carries.
        total = sum((term.of for term in terms), np.zeros(self.width, np.int64))
        total = total + sum((text.startswith("-") and not text.startswith("-0x")) * (t.of == 0) * (MASK + 1)
                            for text, t in zip(rest[:3], terms, strict=True))  # fmt: skip
        if "X" in modifiers:
            carries = [self.predicate(text) for text in rest[3:]]
            terms += carries
            total = total + sum(carry.of for carry in carries)
        self.put(name, total, terms, on)
        for place, out in enumerate(outs):
            self.put(out, (total >> 32 > place).astype(np.int64), terms, on)

    def do_lea(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        name, *rest = operands
        out = rest.pop(0) if re.fullmatch(r"U?P\d", rest[0]) else None
        a, b = self.operand(rest[0]), self.operand(rest[1])
        if "HI" not in modifiers:
            shift = int(rest[2], 16) if len(rest) > 2 else 0
            total = (a.of << shift & MASK) + b.of
            self.put(name, total, (a, b), on)
            if out:
                self.put(out, total >> 32, (a, b), on)
            return
        if "SX32" in modifiers:
            wide, shift, carries = signed(a.of), int(rest[2], 16), rest[3:]
            sources = [a, b]
        else:
            c = self.operand(rest[2])
            wide, shift, carries = c.of << 32 | a.of, int(rest[3], 16), rest[4:]
            sources = [a, b, c]
        # Only the bits that end up in the upper word matter.
        upper = wide >> (32 - shift) if shift else wide >> 32
        extra = [self.predicate(text) for text in carries]
        self.put(name, upper + b.of + sum((each.of for each in extra), 0), [*sources, *extra], on)

    def do_lop3(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        out = operands.pop(0) if re.fullmatch(r"U?P\d", operands[0]) else None
        values = [self.operand(text) for text in operands[1:4]]
        result = lookup(int(operands[4], 16), [value.of for value in values], MASK)
        self.put(operands[0], result, values, on)
        if out:
            self.put(out, (result != 0).astype(np.int64), values, on)

    def do_plop3(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        values = [self.predicate(text) for text in operands[2:5]]
        for name, table in zip(operands[:2], operands[5:7], strict=True):
            table_of = int(table, 16)
            known = values if table_of not in (0, 0xFF) else [self.constant(0)]
            self.put(name, lookup(table_of, [value.of for value in values], 1), known, on)

    def do_shf(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        low, by, high = (self.operand(text) for text in operands[1:4])
        signs = {"S32", "S64"} & set(modifiers)
        shift = by.of & 63
        if "L" in modifiers:
            both = (high.of << 32 | low.of) if {"HI", "U64", "S64"} & set(modifiers) else low.of
            result = both << np.minimum(shift, 31)
            result = result >> 32 if "HI" in modifiers else result
        else:
            top = signed(high.of) if signs else high.of
            result = top >> np.minimum(shift, 31) if "HI" in modifiers else (top << 32 | low.of) >> shift
        self.put(operands[0], result, (low, by, high), on)

    def do_isetp(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        a, b, other = self.operand(operands[2]), self.operand(operands[3]), self.predicate(operands[4])
        x, y = (a.of, b.of) if "U32" in modifiers else (signed(a.of), signed(b.of))
        result = getattr(np, COMPARISONS[modifiers[0]])(x, y)
        known = [a, b]
        if "EX" in modifiers:  # of the upper words; the lower ones decide if these are equal
            below = self.predicate(operands[5])
            result = np.where(x == y, below.of.astype(bool), getattr(np, STRICT[modifiers[0]])(x, y))
            known.append(below)
        for name, turned in zip(operands[:2], (False, True), strict=True):
            mine = ~result if turned else result
            joined = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}[
                modifiers[-1 - ("EX" in modifiers)]
            ]
            value = joined(mine, other.of.astype(bool))
            sure = other.known & (other.of == (0 if "AND" in modifiers else 1)) & ("XOR" not in modifiers)
            everything = np.logical_and.reduce([each.known for each in [*known, other]])
            self.write(name, Value(value.astype(np.int64), everything | sure), on)

    def do_sel(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        a, b, choice = self.operand(operands[1]), self.operand(operands[2]), self.predicate(operands[3])
        self.put(operands[0], np.where(choice.of, a.of, b.of), (a, b, choice), on)

    def do_imnmx(self, modifiers: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        a, b, least = self.operand(operands[1]), self.operand(operands[2]), self.predicate(operands[3])
        x, y = (a.of, b.of) if "U32" in modifiers else (signed(a.of), signed(b.of))
        self.put(operands[0], np.where(least.of, np.minimum(x, y), np.maximum(x, y)), (a, b, least), on)

    def do_iabs(self, _: tuple[str, ...], operands: list[str], on: np.ndarray) -> None:
        value = self.operand(operands[1])
        self.put(operands[0], abs(signed(value.of)), (value,), on)


def after(name: str) -> str:
    """The register behind this one."""
    found = re.fullmatch(r"(U?R)(\d+)", name)
    return f"{found[1]}{int(found[2]) + 1}" if found else name


def signed(values: np.ndarray) -> np.ndarray:
    """Unsigned 32-bit values as signed ones."""
    return np.where(values > MASK >> 1, values - MASK - 1, values)


def lookup(table: int, values: Sequence[np.ndarray], mask: int) -> np.ndarray:
    """A function of three bits, given by its table, of each bit of three values."""
    result = np.zeros_like(values[0])
    for row in range(8):
        if table >> row & 1:
            bits = [value if row >> 2 - place & 1 else ~value & mask for place, value in enumerate(values)]
            result |= bits[0] & bits[1] & bits[2]
    return result
