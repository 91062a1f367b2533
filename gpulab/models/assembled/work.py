"""What an instruction is for, told in the same words for PTX and SASS, so that one can be found in the other."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.models.tally import FormLike
from gpulab.ptx.syntax import Instruction as PtxInstruction
from gpulab.ptx.syntax import Location
from gpulab.sass.syntax import Instruction

Chain = tuple[tuple[str, int], ...]
#: How much finding an instruction of this kind again says about where one is; the rest is known by its line alone.
WEIGHTS = {
    "ld.global": 4.0, "st.global": 4.0, "atom.global": 4.0, "ld.shared": 4.0, "st.shared": 4.0, "atom.shared": 4.0,
    "copy": 4.0, "ldmatrix": 4.0, "barrier": 4.0, "shuffle": 4.0, "vote": 2.0, "tensor": 4.0,
    "fp64": 2.0, "fp16": 2.0, "fp32": 2.0, "sfu": 1.5, "convert": 1.0, "multiply": 0.6, "logic": 0.3, "shift": 0.3,
}  # fmt: skip
#: Kinds that ptxas neither invents nor drops, the surest first: how often a loop was unrolled shows in them.
COUNTED = (
    "barrier", "st.global", "st.shared", "atom.global", "copy", "ld.global", "ld.shared", "ldmatrix", "shuffle",
    "tensor", "fp64", "fp32", "fp16", "sfu", "convert", "vote", "atom.shared", "multiply",
)  # fmt: skip
_MEMORY = {
    "LDG": "ld.global", "LD": "ld.global", "STG": "st.global", "ST": "st.global", "LDS": "ld.shared", "STS": "st.shared",
    "LDL": "ld.local", "STL": "st.local", "ATOMG": "atom.global", "ATOM": "atom.global", "RED": "atom.global",
    "ATOMS": "atom.shared", "LDGSTS": "copy", "LDSM": "ldmatrix",
}  # fmt: skip
_OTHER = {
    "BAR": "barrier", "SHFL": "shuffle", "VOTE": "vote", "VOTEU": "vote", "MATCH": "vote", "REDUX": "vote",
    "HMMA": "tensor", "IMMA": "tensor", "DMMA": "tensor", "BMMA": "tensor", "QMMA": "tensor", "HGMMA": "tensor",
    "DADD": "fp64", "DMUL": "fp64", "DFMA": "fp64", "DSETP": "fp64",
    "FADD": "fp32", "FMUL": "fp32", "FFMA": "fp32", "FADD32I": "fp32", "FMUL32I": "fp32", "FFMA32I": "fp32",
    "HADD2": "fp16", "HMUL2": "fp16", "HFMA2": "fp16", "MUFU": "sfu",
    "LOP3": "logic", "ULOP3": "logic", "SHF": "shift", "USHF": "shift",
    "I2F": "convert", "F2I": "convert", "F2F": "convert", "I2FP": "convert", "F2FP": "convert", "FRND": "convert",
}  # fmt: skip
_BYTES = {"U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "64": 8, "128": 16}
_INTEGER = {"and": "logic", "or": "logic", "xor": "logic", "shl": "shift", "shr": "shift", "shf": "shift"}
_NO_PRODUCT = {"MOV", "SHL", "IADD", "X", "WIDE", "HI"}
_FLOATS = {"f16", "f32", "f64", "bf16"}


@dataclass(frozen=True, slots=True)
class Work:
    """What an instruction is for.

    Attributes
    ----------
    kind : str
        A key of `WEIGHTS`, ``ld.local``, ``st.local``, or empty for what is known by its line alone.
    amount : int
        Bytes of each lane for accesses of memory, else 1.
    place : tuple of (str, int)
        File and line, innermost first, then those of the callers; empty if unknown.
    """

    kind: str
    amount: int
    place: Chain


def of_ptx(instruction: PtxInstruction, form: FormLike) -> Work:
    """What a PTX instruction is for."""
    amount = form.access_bytes if form.kind in ("load", "store", "atomic", "reduction") else 1
    return Work(_ptx_kind(form), max(1, amount), chain(instruction.location))


def of_sass(instruction: Instruction) -> Work:
    """What a SASS instruction is for."""
    opcode = instruction.opcode
    place = chain(instruction.location)
    if opcode in _MEMORY:
        return Work(_MEMORY[opcode], width(instruction), place)
    if opcode == "IMAD":
        return Work("" if _NO_PRODUCT & set(instruction.modifiers) else "multiply", 1, place)
    # Moves of constants go through whatever pipe is free: with -RZ times RZ this is no arithmetic.
    if opcode == "HFMA2" and "-RZ" in instruction.operands:
        return Work("", 1, place)
    return Work(_OTHER.get(opcode, ""), 1, place)


def width(instruction: Instruction) -> int:
    """Bytes of each lane that a SASS access of memory moves."""
    if instruction.opcode == "LDSM":
        return 4 * max([int(each) for each in instruction.modifiers if each in ("2", "4")], default=1)
    return max([_BYTES[each] for each in instruction.modifiers if each in _BYTES], default=4)


def chain(location: Location | None) -> Chain:
    """File and line of a place and of the calls that led to it, innermost first."""
    found = []
    while location is not None:
        found.append((location.file, location.line))
        location = location.inlined_at
    return tuple(found)


def _ptx_kind(form: FormLike) -> str:
    if form.opcode in ("ldmatrix", "stmatrix"):
        return "ldmatrix"
    if form.is_copy:
        return "copy"
    if form.kind in ("load", "store", "atomic", "reduction"):
        space = "global" if form.space == "generic" else form.space
        name = {"load": "ld", "store": "st"}.get(form.kind, "atom") + f".{space}"
        return name if name in _MEMORY.values() else ""
    if form.kind in ("barrier", "shuffle", "vote"):
        return form.kind
    if form.pipe == "fp32":
        return "fp32" if form.kind in ("fadd", "fmul", "ffma") else ""
    if form.pipe == "convert":
        return "convert" if _FLOATS & {form.type, form.source_type} else ""
    if form.pipe == "int":
        return "multiply" if form.opcode in ("mul", "mad") and form.mode == "lo" else _INTEGER.get(form.opcode, "")
    return form.pipe if form.pipe in ("fp64", "fp16", "sfu", "tensor") else ""
