"""Moves and packs, address conversion, carry chains, and what has no effect in the emulator."""

from __future__ import annotations

from gpulab.emulator.layout import put
from gpulab.emulator.llvm.ir import Builder, Value, constant
from gpulab.emulator.lower.affine import add_cvta
from gpulab.emulator.lower.control import fault_if
from gpulab.emulator.lower.integers import high_half, signed
from gpulab.emulator.lower.table import ELEMENTS, lowers
from gpulab.emulator.lower.values import State
from gpulab.emulator.memory import CONSTANT_MARK, FIRST_WINDOW, WINDOW_BITS, WINDOWS
from gpulab.ptx.opcodes import CARRY
from gpulab.ptx.syntax import Group, Operand, Register
from gpulab.ptx.types import TYPE_BYTES
from gpulab.ptx.types import bits_of as type_bits


@lowers(*"membar fence prefetch prefetchu applypriority discard pmevent griddepcontrol".split())
def nothing(state: State) -> None:
    """Memory is sequentially consistent here, and there are no caches to fill."""


@lowers("nanosleep")
def sleep(state: State) -> None:
    """As many ticks of the clock as the lane that sleeps longest."""
    if not state.uses_clock:
        return
    b = state.b
    duration = b.widen(state.value(state.instruction.operands[0], "u32"))
    longest = b.reduce("umax", b.select(b.mask_vector(state.on()), duration, constant("i32", 0)))
    put(b, state.context, "clock", b.add(state.get("clock"), b.resize(longest, "i64")))


@lowers("mov")
def mov(state: State) -> None:
    destination, source = state.instruction.operands
    type_name = state.form.type or ""
    if isinstance(source, Group):
        state.write(destination, _packed(state, source, type_name), type_name)
    elif isinstance(destination, Group):
        _unpack(state, destination, source, type_name)
    else:
        state.write(destination, state.value(source, type_name), type_name)


def _packed(state: State, source: Group, type_name: str) -> Value:
    b, width = state.b, type_bits(type_name) // len(source.elements)
    whole = constant(f"i{type_bits(type_name)}", 0)
    for number, element in enumerate(source.elements):
        part = b.resize(state.value(element, f"b{width}"), whole.type)
        whole = b.or_(whole, b.shl(part, width * number))
    return b.bitcast(whole, ELEMENTS[type_name])


def _unpack(state: State, destination: Group, source: Operand, type_name: str) -> None:
    b, width = state.b, type_bits(type_name) // len(destination.elements)
    whole = b.bitcast(state.value(source, type_name), f"i{type_bits(type_name)}")
    parts = [b.resize(b.lshr(whole, width * n), f"i{width}") for n in range(len(destination.elements))]
    for element, part in zip(destination.elements, parts, strict=True):
        state.write(element, part, f"b{width}")


@lowers("cvta")
def cvta(state: State) -> None:
    destination, source = state.instruction.operands
    value = add_cvta(state, state.value(source, state.form.type or ""))
    state.write(destination, value, state.form.type or "")


@lowers("isspacep")
def isspacep(state: State) -> None:
    destination, source = state.instruction.operands
    b = state.b
    address = state.value(source, "u64")
    window = b.lshr(address, WINDOW_BITS)
    space = state.form.space or ""
    if space in WINDOWS:
        inside = b.is_("eq", window, WINDOWS[space] >> WINDOW_BITS)
    else:
        marked = b.is_("ne", b.and_(address, CONSTANT_MARK), 0)
        inside = b.and_(b.is_("uge", window, FIRST_WINDOW), marked if space == "const" else b.not_(marked))
    state.write(destination, inside, "pred")


@lowers("createpolicy")
def createpolicy(state: State) -> None:
    """A cache policy is a number that nothing reads."""
    state.write(state.instruction.operands[0], constant("i64", 0), "b64")


# ---- carry chains


def uses_carry(state: State) -> bool:
    """Whether the instruction reads or writes the carry."""
    return state.form.carry_out or state.form.opcode in ("addc", "subc", "madc")


def carry(state: State) -> None:
    """Lower an instruction of a carry chain."""
    b, form = state.b, state.form
    values = [state.value(each, form.type or "") for each in state.instruction.operands[1:]]
    incoming = None
    if form.opcode.endswith("c"):
        flag = state.read_register(CARRY)
        assert isinstance(flag, Value)
        incoming = b.cast("zext", flag, values[0].type)
    if form.opcode.startswith("mad"):
        first = high_half(b, values[0], values[1], signed(form)) if form.mode == "hi" else b.mul(values[0], values[1])
        values = [first, values[2]]
    combine = _difference if form.opcode.startswith("sub") else _sum
    result, out = combine(b, values[0], values[1], incoming)
    # The carry first: it must not see a destination that is also a source.
    if form.carry_out:
        state.write(CARRY, out, "pred")
    state.write(state.instruction.operands[0], result, form.type or "")


def _sum(b: Builder, x: Value, y: Value, incoming: Value | None) -> tuple[Value, Value]:
    total = b.add(x, y)
    out = b.compare("ult", total, x)
    if incoming is None:
        return total, out
    whole = b.add(total, incoming)
    return whole, b.or_(out, b.compare("ult", whole, total))


def _difference(b: Builder, x: Value, y: Value, incoming: Value | None) -> tuple[Value, Value]:
    # The carry of a subtraction is that of adding the complement: set if nothing is borrowed.
    if incoming is None:
        return b.sub(x, y), b.compare("uge", x, y)
    return _sum(b, x, b.not_(y), incoming)


# ---- what ends or leaves the kernel


@lowers("trap", "brkpt")
def trap(state: State) -> None:
    on = state.on()
    fault_if(state, state.b.is_("ne", on, 0), "trap", on)


@lowers("call")
def call(state: State) -> None:
    """A call of a built-in: Python does it, from the arguments of all lanes, and puts the results in place of the first."""
    b, (returns, _, arguments) = state.b, state.instruction.operands[:3]
    assert isinstance(returns, Group) and isinstance(arguments, Group)
    on = state.on()
    place = b.alloca("i64", 32, max(len(arguments.elements), 1))
    for number, argument in enumerate(arguments.elements):
        assert isinstance(argument, Register)
        pattern = state.value(argument, f"b{8 * TYPE_BYTES[state.program.function.registers[argument.name]]}")
        b.store(b.widen(b.resize(pattern, "i64")), b.offset(place, 256 * number))
    with b.if_(b.is_("ne", on, 0)):
        state.note_progress()
        function = state.constant_get("print", "ptr")
        listed = f"{state.context.ir}, i64 {state.index}, {on.ir}, {place.ir}"
        failed = b.assign("i32", 1, f"call i32 {function.text}({listed})")
        fault_if(state, b.is_("ne", failed, 0), "call", on)
    for element in returns.elements:
        assert isinstance(element, Register)
        width = TYPE_BYTES[state.program.function.registers[element.name]]
        state.write(element, b.resize(b.load("i64", place, 32), f"i{8 * width}"), f"b{8 * width}")
