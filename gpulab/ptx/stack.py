"""The stack of each thread, for calls that are not inlined and for `alloca`.

It lies in local memory, behind the local arrays. A recursive function that calls on pushes the registers that it needs
afterwards, and its local arrays stand there too; what `alloca` gives is in an area of its own. The names here cannot be
written in PTX, so they are nobody else's.
"""

from __future__ import annotations

from dataclasses import replace

from gpulab.ptx.syntax import Group, Guard, Immediate, Instruction, Operand, Register, Symbol, Variable

STACK_BYTES = 16 << 10
"""Room for the frames of recursive functions of one thread, behind the largest of them; CUDA's default is 1 KiB."""

ALLOCA_BYTES = 16 << 10
"""Room for what `alloca` gives to one thread."""

FRAME = "frame@"
DEPTH = "depth@"
ALLOCATED = "allocated@"
RETURN = "return@"
ADDRESS = "address@"
TOO_DEEP = "too deep@"
_BEGIN = "begin@"
_ASKED = "asked@"
STACK = "stack@"
_AREA = "alloca@"

OVERFLOW = "stack overflow@"
NO_FUNCTION = "no function@"
"""Built-ins that end the launch: the stack is full at this depth, or an address is no function's."""

OPCODES = ("alloca", "stacksave", "stackrestore")
REGISTERS = {ALLOCATED: "b64", _BEGIN: "b64", _ASKED: "b64", TOO_DEEP: "pred"}
_DEFAULT_ALIGN = 8


def entry_of(function: str) -> str:
    """Label of a function's own body."""
    return f"entry@{function}"


def function_at(entry: str) -> str:
    """The function whose body begins at a label."""
    return entry.removeprefix(entry_of(""))


def return_of(function: str) -> str:
    """Register that holds to which call a function returns."""
    return f"{RETURN}{function}"


def returns_of(function: str) -> str:
    """Label of the list of places to which a function returns."""
    return f"returns@{function}"


def passed(stem: str, offset: int, size: int) -> str:
    """Register that passes a piece of an argument or a result, whoever is called."""
    return f"{stem}+{offset}:{size}@"


def stack_variable(largest: int) -> Variable:
    """The area for frames, the largest of which has so many bytes."""
    return _bytes(STACK, STACK_BYTES + largest)


def _bytes(name: str, size: int) -> Variable:
    return Variable(name, "local", "b8", size, 16, size)


ALLOCA_AREA = _bytes(_AREA, ALLOCA_BYTES)


def synthetic(source: Instruction, opcode: str, *operands: Operand, guard: str | None = None) -> Instruction:
    """An instruction, its modifiers behind dots, in the place of another one."""
    name, *modifiers = opcode.split(".")
    condition = None if guard is None else Guard(Register(guard))
    return replace(source, opcode=name, modifiers=tuple(modifiers), operands=operands, guard=condition, synthetic=True)


def overflow(source: Instruction, *depth: Operand) -> Instruction:
    """The end of the launch if the stack is full; without a depth, `alloca` has filled it."""
    return synthetic(source, "call", Group(()), Symbol(OVERFLOW), Group(depth), guard=TOO_DEEP)


def expanded(instruction: Instruction) -> list[Instruction]:
    """The instructions that an unguarded `alloca`, `stacksave` or `stackrestore` stands for; the last one counts."""
    if instruction.modifiers != ("u64",):
        return [instruction]
    area = Register(ALLOCATED)
    if instruction.opcode == "stacksave":
        return [replace(instruction, opcode="mov", operands=(*instruction.operands, area))]
    if instruction.opcode == "stackrestore":
        return [replace(instruction, opcode="mov", operands=(area, *instruction.operands))]
    begin, asked = Register(_BEGIN), Register(_ASKED)
    destination, size, *rest = instruction.operands
    align = int(rest[0].value) if rest and isinstance(rest[0], Immediate) else _DEFAULT_ALIGN
    return [
        synthetic(instruction, "add.u64", begin, area, Immediate(align - 1)),
        synthetic(instruction, "and.b64", begin, begin, Immediate(-align)),
        # A size that is far too large must not wrap around.
        synthetic(instruction, "min.u64", asked, size, Immediate(2 * ALLOCA_BYTES)),
        synthetic(instruction, "add.u64", area, begin, asked),
        synthetic(instruction, "setp.gt.u64", Register(TOO_DEEP), area, Symbol(_AREA, ALLOCA_BYTES)),
        overflow(instruction),
        replace(instruction, opcode="mov", operands=(destination, begin)),
    ]


def start(instruction: Instruction, variables: dict[str, Variable]) -> list[Instruction]:
    """What a kernel begins with: its stack is empty."""
    pairs = ((FRAME, STACK), (ALLOCATED, _AREA))
    return [
        synthetic(instruction, "mov.u64", Register(register), Symbol(area))
        for register, area in pairs
        if area in variables
    ]
