"""What an instruction is: its row of the table, read into a `Form`.

Both engines, the flow graph and the models look at an instruction through its form. What has no row is refused by name,
with its line: nothing is skipped or guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx.beyond import advice
from gpulab.ptx.matrix import FLOAT_KINDS, Matrix, matrix_of
from gpulab.ptx.refusal import place_of
from gpulab.ptx.roles import Role, fragment_registers, read_roles
from gpulab.ptx.syntax import (
    SINK,
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
)
from gpulab.ptx.table import Row, rows
from gpulab.ptx.types import TYPE_BYTES

FLOPS_OF_KIND = {"fadd": 1, "fmul": 1, "ffma": 2, "dadd": 1, "dmul": 1, "dfma": 2, "hadd": 1, "hmul": 1, "hfma": 2}
CARRY = "%carry"
"""The carry flag of `add.cc` and its kin, a predicate register to all that follows the parser."""

MAX_ACCESS_BYTES = 16
COPY_BYTES = {"ca": (4, 8, 16), "cg": (16,)}
"""Sizes of `cp.async` by its cache operator."""

_MEMORY_KINDS = ("load", "store", "atomic", "reduction")


@dataclass(frozen=True, slots=True)
class Form:
    """One row of the table, with its choices made.

    Attributes
    ----------
    opcode : str
    type, source_type : str or None
        Type of the operation, e.g. ``s32``, and of the source where it differs (`cvt`, `set`, `slct`, `dp4a`).
    space : str or None
        ``global``, ``shared``, ``local``, ``param``, ``const`` or ``generic`` for memory accesses, and the space named
        by `cvta` and `isspacep`; None for all else.
    vector : int
        Elements per lane: 1, 2, 4 or 8.
    access_bytes : int
        Bytes per lane of a memory access, 0 for all else. Those of `cp.async` are an operand.
    pipe : str
        ``fp32``, ``fp64``, ``fp16``, ``int``, ``sfu``, ``lsu``, ``uniform``, ``control``, ``barrier``, ``move``,
        ``convert``, ``tensor``.
    kind : str
        ``fadd`` … ``hfma``, ``hmma``, ``dmma``, ``imma``, ``bmma`` (matrix products), ``integer``, ``conversion``, ``load``, ``store``, ``atomic``, ``reduction``, ``branch``,
        ``barrier``, ``shuffle``, ``vote``, ``move``, ``special``, ``other``.
    flops : int
        FLOP per thread: 1 for add and mul, 2 for fma, twice that for packed halves; of a matrix product a 32nd of the
        warp's; else 0.
    rounding : str or None
        ``rn``, ``rz``, ``rm``, ``rp``, ``rna``, or to an integral value ``rni``, ``rzi``, ``rmi``, ``rpi``. Float
        additions, multiplications and conversions to a float without one have ``rn``.
    comparison, boolean : str or None
        Of `set` and `setp`: ``lt``, … and ``and``, ``or``, ``xor``.
    mode : str or None
        What else tells forms of an opcode apart: ``lo``, ``hi``, ``wide``, ``approx``, ``full``, ``wrap``, ``clamp``,
        ``up``, ``idx``, ``all``, ``ballot``, ``to``, ``sync``, ``red``, ``warp``, …
    operation : str or None
        Of atomics and reductions: ``add``, ``cas``, …; of `testp` the property; of `shf` the direction.
    semantics, scope, cache : str or None
        Memory ordering, its scope, and the cache operator.
    ftz, saturate, finite, carry_out, nan, relu, xor_sign, absolute, non_coherent, shift_amount, cache_hint : bool
        ``.ftz``, ``.sat``, ``.satfinite``, ``.cc``, ``.NaN``, ``.relu``, ``.xorsign``, ``.abs``, ``.nc``, ``.shiftamt``,
        ``.L2::cache_hint``.
    roles : tuple of Role
        One for each operand.
    section : str
        Anchor of the section in the PTX manual.
    syntax : str
        The row's first column.
    matrix : Matrix or None
        What a matrix instruction works on.
    """

    opcode: str
    type: str | None
    source_type: str | None
    space: str | None
    vector: int
    access_bytes: int
    pipe: str
    kind: str
    flops: int
    rounding: str | None
    comparison: str | None
    boolean: str | None
    mode: str | None
    operation: str | None
    semantics: str | None
    scope: str | None
    cache: str | None
    ftz: bool
    saturate: bool
    finite: bool
    carry_out: bool
    nan: bool
    relu: bool
    xor_sign: bool
    absolute: bool
    non_coherent: bool
    shift_amount: bool
    cache_hint: bool
    roles: tuple[Role, ...]
    section: str
    syntax: str
    matrix: Matrix | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it is an asynchronous copy from global into shared memory: a load and a store in one."""
        return self.opcode == "cp" and self.kind == "load"

    @property
    def changes_memory(self) -> bool:
        """Whether it changes memory that other threads may read; `atom` and `red`, which may leave all as it was, apart."""
        if self.kind == "store":
            return self.space not in ("local", "call")
        is_arrival = self.kind == "atomic" and (self.opcode == "mbarrier" or self.operation == "noinc")
        return self.is_copy or is_arrival


def form(instruction: Instruction) -> Form:
    """Look up what an instruction is.

    Raises
    ------
    UnsupportedInstruction
        If the table has no such form, or its operands do not fit it.
    """
    found = _forms(instruction.opcode, instruction.modifiers)
    if not found:
        raise UnsupportedInstruction(_refusal(instruction), instruction.span.line)
    found = tuple(_sized(each, instruction) for each in found)
    problems = [_operand_problem(each, instruction) for each in found]
    if None not in problems:
        raise UnsupportedInstruction(f"{place_of(instruction)}: {problems[0]}", instruction.span.line)
    return found[problems.index(None)]


def _sized(found: Form, instruction: Instruction) -> Form:
    """An asynchronous copy with the size that is an operand of it."""
    size = instruction.operands[2] if found.is_copy and len(instruction.operands) > 2 else None
    return replace(found, access_bytes=int(size.value)) if isinstance(size, Immediate) else found


@lru_cache(maxsize=4096)
def _forms(opcode: str, modifiers: tuple[str, ...]) -> tuple[Form, ...]:
    """The forms of a spelling, in the table's order: rows may differ in nothing but their operands."""
    found = []
    for row in rows().get(opcode, ()):
        match = row.match(opcode, modifiers)
        if match and _is_possible(match.groupdict(), modifiers):
            found.append(_make_form(row, opcode, modifiers, match.groupdict()))
    return tuple(found)


def plain_form(opcode: str, type_name: str) -> Form:
    """An operation on a type without any modifier, e.g. ``add.f16``."""
    return _forms(opcode, (type_name,))[0]


def _is_possible(choices: dict[str, str | None], modifiers: tuple[str, ...]) -> bool:
    """Whether choices that a row leaves open go together: at most 16 bytes a lane, policies of caches for global memory."""
    vector, type_name = choices.get("vec"), choices.get("type")
    if vector and type_name and int(vector[1]) * TYPE_BYTES[type_name] > MAX_ACCESS_BYTES:
        return False
    # The accumulators of an `mma` have one type, those of a `wmma` may have two.
    if "alayout" not in choices and choices.get("ctype") not in (None, type_name):
        return False
    has_policy = any(word.startswith(("L1::", "L2::")) for word in modifiers)
    return not has_policy or choices.get("space") in (None, "global")


def _make_form(row: Row, opcode: str, modifiers: tuple[str, ...], choices: dict[str, str | None]) -> Form:
    type_name, source_type = choices.get("type"), choices.get("stype")
    vector = int(choices["vec"][1]) if choices.get("vec") else 1  # type: ignore[index]
    is_memory = row.kind in _MEMORY_KINDS
    space = (choices.get("space") or "").partition("::")[0] or ("generic" if is_memory else None)
    matrix = matrix_of(opcode, choices)
    flops = FLOPS_OF_KIND.get(row.kind, 0) * (2 if (type_name or "").endswith("x2") else 1)
    if matrix and row.kind in FLOAT_KINDS:
        flops = matrix.flops
    return Form(
        opcode=opcode,
        type=type_name,
        source_type=source_type,
        space=space,
        vector=vector,
        access_bytes=_access_bytes(row, vector, type_name, matrix) if is_memory else 0,
        pipe="uniform" if is_memory and space in ("param", "const") else row.pipe,
        kind=row.kind,
        flops=flops,
        rounding=choices.get("rnd") or _default_rounding(row, type_name),
        comparison=choices.get("cmp"),
        boolean=choices.get("bool"),
        mode=choices.get("mode"),
        operation=choices.get("op"),
        semantics=choices.get("sem"),
        scope=choices.get("scope"),
        cache=choices.get("cache"),
        ftz="ftz" in modifiers,
        saturate="sat" in modifiers,
        finite="satfinite" in modifiers,
        carry_out="cc" in modifiers,
        nan="NaN" in modifiers,
        relu="relu" in modifiers,
        xor_sign="xorsign" in modifiers,
        absolute="abs" in modifiers,
        non_coherent="nc" in modifiers,
        shift_amount="shiftamt" in modifiers,
        cache_hint="L2::cache_hint" in modifiers,
        roles=tuple(read_roles(row.operands, type_name, source_type, fragment_registers(choices, matrix))),
        section=row.section,
        syntax=row.syntax,
        matrix=matrix,
    )


def _access_bytes(row: Row, vector: int, type_name: str | None, matrix: Matrix | None) -> int:
    """Bytes per lane of a memory access."""
    if matrix:
        return matrix.access_bytes
    if "matrix" in row.syntax:
        # Each lane that gives an address reads or writes a row of eight elements.
        return MAX_ACCESS_BYTES
    return vector * TYPE_BYTES[type_name] if type_name else 0


def _default_rounding(row: Row, type_name: str | None) -> str | None:
    if row.kind in FLOPS_OF_KIND or (row.kind == "conversion" and type_name in ("f16", "f32", "f64")):
        return "rn"
    return None


_SHAPES: dict[str, tuple[type, ...]] = {
    "scalar": (Register, Special, Immediate, Symbol),
    "pack": (Register, Special, Immediate, Symbol, Group, Negated),
    "pair": (Register, Pair),
    "address": (Address,),
    "label": (Symbol,),
    "list": (Symbol,),
    "call": (Group, Symbol, Register),
}


def _operand_problem(form: Form, instruction: Instruction) -> str | None:
    """Why the operands do not fit, or None."""
    operands, roles = instruction.operands, form.roles
    fewest = sum(not role.optional for role in roles)
    if not fewest <= len(operands) <= len(roles):
        came = f"{len(operands)} operand{'s' * (len(operands) != 1)}"
        return f"'{instruction.text}' has {came}, but {form.syntax} takes {fewest}."
    for operand, role in zip(operands, roles, strict=False):
        if not _fits(operand, role, form.vector):
            needed = f" It takes {role.count} registers." if role.shape == "fragment" else ""
            return f"Operand '{role.name}' of '{instruction.text}' does not fit {form.syntax}.{needed}"
    if form.comparison is not None and (form.boolean is not None) != (len(operands) == len(roles)):
        return f"'{instruction.text}' needs a predicate to combine with exactly if it says how (.and, .or, .xor)."
    if roles and roles[-1].name == "h" and form.cache_hint != (len(operands) == len(roles)):
        return f"'{instruction.text}' needs a cache policy exactly if it says .L2::cache_hint."
    if form.is_copy and form.access_bytes not in COPY_BYTES[form.cache or ""]:
        return f"'{instruction.text}' copies {form.access_bytes} bytes, but a size of {COPY_BYTES[form.cache or '']} can be copied."
    return None


def _fits(operand: Operand, role: Role, vector: int) -> bool:
    if not role.written and SINK in (operand.elements if isinstance(operand, Group) else (operand,)):
        return False
    if role.shape == "vector":
        if vector == 1:
            return isinstance(operand, _SHAPES["scalar"])
        return isinstance(operand, Group) and len(operand.elements) == vector
    if role.shape == "fragment":
        kinds = Register if role.written else _SHAPES["scalar"]
        elements = operand.elements if isinstance(operand, Group) else (operand,)
        return len(elements) == role.count and all(isinstance(element, kinds) for element in elements)
    if role.type == "imm":
        return isinstance(operand, Immediate)
    if role.written and role.shape == "scalar":
        return isinstance(operand, Register)
    if role.type == "pred" and isinstance(operand, Negated):
        return True
    return isinstance(operand, _SHAPES[role.shape])


def _refusal(instruction: Instruction) -> str:
    spelling = ".".join((instruction.opcode, *instruction.modifiers))
    message = f"{place_of(instruction)}: the emulator does not support '{spelling}' (in '{instruction.text}')."
    left_out = advice(spelling)
    if left_out:
        return f"{message} {left_out}"
    forms = rows().get(instruction.opcode)
    if forms:
        return f"{message} Supported forms: {'; '.join(row.syntax for row in forms)}."
    near = get_close_matches(instruction.opcode, rows(), 3)
    return message + (f" Near names that it has: {', '.join(near)}." if near else " Run this kernel on a CUDA GPU.")


def written_registers(instruction: Instruction, form: Form) -> Iterator[str]:
    """Names of the registers that an instruction writes, without the sink."""
    for operand, role in zip(instruction.operands, form.roles, strict=False):
        if role.written:
            yield from registers_in(operand)
    if form.carry_out:
        yield CARRY


def read_registers(instruction: Instruction, form: Form) -> Iterator[str]:
    """Names of the registers that an instruction reads: its sources, its addresses and its guard."""
    if instruction.guard is not None:
        yield instruction.guard.register.name
    for operand, role in zip(instruction.operands, form.roles, strict=False):
        if not role.written:
            yield from registers_in(operand)
    if form.opcode in ("addc", "subc", "madc"):
        yield CARRY


def registers_in(operand: Operand) -> Iterator[str]:
    """Names of the registers in an operand, without the sink."""
    if isinstance(operand, Register):
        if operand.name != "_":
            yield operand.name
    elif isinstance(operand, Negated):
        yield operand.register.name
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, Address):
        if isinstance(operand.base, Register):
            yield operand.base.name
    elif isinstance(operand, Group):
        for element in operand.elements:
            yield from registers_in(element)
