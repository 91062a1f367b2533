"""Atomic operations: lanes in ascending order, one after another."""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value, bits_of, constant, int_of
from gpulab.emulator.lower.access import Access, resolve
from gpulab.emulator.lower.count import count_request
from gpulab.emulator.lower.memory import make_access
from gpulab.emulator.lower.table import ELEMENTS, lowers, pure_function
from gpulab.emulator.lower.values import State
from gpulab.ptx.opcodes import plain_form
from gpulab.ptx.syntax import Group, Operand
from gpulab.ptx.types import TYPE_BYTES

# LLVM's names. They are used for shared memory as well, where no other thread looks, because they are right for both.
_OPERATIONS = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exch": "xchg",
    "inc": "uinc_wrap",
    "dec": "udec_wrap",
}


@lowers("atom", "red")
def atomic(state: State) -> None:
    b, type_name = state.b, state.form.type or ""
    operands = list(state.instruction.operands)
    destinations = _elements(operands.pop(0)) if state.form.opcode == "atom" else []
    access = make_access(state, operands[0], layout.STORE | layout.ATOMIC)
    # Of a vector each element is an operation of its own; a cache policy has no effect.
    sources = [_elements(each) for each in operands[1 : 3 if state.form.operation == "cas" else 2]]
    values = [[b.widen(state.value(element, type_name)) for element in each] for each in sources]
    element = int_of(ELEMENTS[type_name])
    old = [b.variable(constant(element, 0, 32)) for _ in values[0]]
    if state.guard is None:
        _run(state, access, values, old)
    else:
        with b.if_(b.is_("ne", access.on, 0)):
            _run(state, access, values, old)
    for destination, place in zip(destinations, old, strict=bool(destinations)):
        state.write(destination, b.bitcast(b.load(element, place, 32), ELEMENTS[type_name]), type_name)


def _elements(operand: Operand) -> list[Operand]:
    return list(operand.elements) if isinstance(operand, Group) else [operand]


def _run(state: State, access: Access, values: list[list[Value]], old: list[Value]) -> None:
    b = state.b
    resolve(state, access)
    count_request(state, access)
    element, step = ELEMENTS[state.form.type or ""], TYPE_BYTES[state.form.type or ""]
    places = [[b.variable(value) for value in each] for each in values]
    with b.bits(access.on) as lane:
        wide = b.resize(lane, "i64")
        host = b.load("i64", b.offset(state.buffers["hosts"], b.mul(wide, 8)))
        for number, before in enumerate(old):
            pointer = b.cast("inttoptr", b.add(host, number * step), "ptr")
            arguments = [b.load(element, b.offset(each[number], b.mul(wide, step))) for each in places]
            found = _apply(state, element, pointer, arguments)
            was = b.bitcast(found, int_of(element))
            if state.program.spins:
                state.note_progress(b.compare("ne", was, b.load(was.type, pointer, align=min(step, 8))))
            b.store(was, b.offset(before, b.mul(wide, step)))


def _apply(state: State, element: str, pointer: Value, arguments: list[Value]) -> Value:
    b, form = state.b, state.form
    if element == "i128" or (form.type or "").removesuffix("x2") in ("f16", "bf16"):
        return _update(state, element, pointer, arguments)
    if form.operation == "cas":
        pair = f"{{ {element}, i1 }}"
        compare, new = arguments
        found = b.assign(pair, 1, f"cmpxchg {pointer.ir}, {compare.ir}, {new.ir} monotonic monotonic")
        return b.assign(element, 1, f"extractvalue {pair} {found.text}, 0")
    if element in ("float", "double"):
        return b.assign(element, 1, f"atomicrmw fadd {pointer.ir}, {arguments[0].ir} monotonic")
    name = _OPERATIONS.get(form.operation or "")
    if name is None:
        name = form.operation if (form.type or "")[0] == "s" else f"u{form.operation}"
    return b.assign(element, 1, f"atomicrmw {name} {pointer.ir}, {arguments[0].ir} monotonic")


def _update(state: State, element: str, pointer: Value, arguments: list[Value]) -> Value:
    """Load, compute, store. Programs with such atomics are sensitive to the order of blocks: one CPU thread runs them."""
    b, form = state.b, state.form
    # The host's arrays need not be aligned to 16 bytes.
    align = min(bits_of(element) // 8, 8)
    old = b.load(element, pointer, align=align)
    if form.operation == "exch":
        new = arguments[0]
    elif form.operation == "cas":
        new = b.select(b.compare("eq", old, arguments[0]), arguments[1], old)
    else:
        plain = plain_form(form.operation or "", form.type or "")
        function = pure_function(plain)
        assert function is not None
        new = function(b, plain, old, arguments[0])
    b.store(new, pointer, align=align)
    return old
