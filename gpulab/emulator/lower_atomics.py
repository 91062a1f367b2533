"""Atomic operations: lanes in ascending order, one after another."""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.ir import Value, bits_of, constant, int_of
from gpulab.emulator.lower_count import count_request
from gpulab.emulator.lower_memory import Access, make_access, resolve
from gpulab.emulator.lower_table import lowers
from gpulab.emulator.lower_values import State

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
    b, form = state.b, state.form
    operands = state.instruction.operands
    destination, operands = (operands[0], operands[1:]) if form.opcode == "atom" else (None, operands)
    access = make_access(state, operands[0], layout.STORE | layout.ATOMIC)
    values = [b.widen(state.value(each, form.type or "")) for each in operands[1:]]
    element = int_of(access.element)
    old = b.variable(constant(element, 0, 32))
    if state.guard is None:
        _run(state, access, values, old)
    else:
        with b.if_(b.is_("ne", access.on, 0)):
            _run(state, access, values, old)
    if destination is not None:
        state.write(destination, b.bitcast(b.load(element, old, 32), access.element), form.type or "")


def _run(state: State, access: Access, values: list[Value], old: Value) -> None:
    b = state.b
    resolve(state, access)
    count_request(state, access)
    element = int_of(access.element)
    step = bits_of(access.element) // 8
    places = [b.variable(value) for value in values]
    with b.bits(access.on) as lane:
        wide = b.resize(lane, "i64")
        host = b.load("i64", b.offset(state.buffers["hosts"], b.mul(wide, 8)))
        pointer = b.cast("inttoptr", host, "ptr")
        arguments = [b.load(access.element, b.offset(place, b.mul(wide, step))) for place in places]
        found = _apply(state, access, pointer, arguments)
        if state.program.spins:
            before, now = b.bitcast(found, element), b.load(element, pointer)
            state.note_progress(b.compare("ne", before, now))
        b.store(b.bitcast(found, element), b.offset(old, b.mul(wide, step)))


def _apply(state: State, access: Access, pointer: Value, arguments: list[Value]) -> Value:
    b, form, element = state.b, state.form, access.element
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
