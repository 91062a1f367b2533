"""Asynchronous copies from global into shared memory; `reference.copies` says what they mean."""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value, bits_of, constant
from gpulab.emulator.lower.access import Access, copy_in, resolve
from gpulab.emulator.lower.count import count_request
from gpulab.emulator.lower.mbarrier import operate as arrive
from gpulab.emulator.lower.memory import read_elements, store_elements
from gpulab.emulator.lower.table import lowers
from gpulab.emulator.lower.values import State
from gpulab.emulator.native.address import record_fault
from gpulab.ptx.syntax import Immediate, Register


@lowers("cp")
def copy(state: State) -> None:
    b = state.b
    if state.form.operation == "noinc":
        arrive(state)
        return
    if not state.form.is_copy:
        # What is copied is there at once: there is nothing to wait for, and an arrival that adds one to what the barrier
        # waits for, and comes at once, changes nothing.
        return
    if state.guard is None:
        _copy(state)
        return
    with b.if_(b.is_("ne", state.on(), 0)):
        _copy(state)


def _copy(state: State) -> None:
    size = state.form.access_bytes
    target, source = state.instruction.operands[:2]
    element, vector = f"i{8 * min(size, 8)}", max(size // 8, 1)
    lengths = _lengths(state)
    if lengths is None:
        access = Access("global", element, vector, size, state.address(source), state.on())
        values = read_elements(state, access)
    else:
        addresses = state.vector(state.address(source))
        values = _read_parts(state, Access("global", element, vector, size, addresses, state.on()), lengths)
    row = len(state.program.forms) + state.program.copies.index(state.index)
    where = state.address(target)
    store_elements(state, Access("shared", element, vector, size, where, state.on(), layout.STORE, row), values)


def _lengths(state: State) -> Value | None:
    """How many bytes each lane reads, i32; None if all of them always."""
    b, size = state.b, state.form.access_bytes
    if state.form.roles[3].name != "e":
        return None
    given = state.instruction.operands[3]
    if isinstance(given, Immediate) and given.value >= size:
        return None
    if isinstance(given, Register) and state.program.function.registers[given.name] == "pred":
        return b.widen(b.select(state.value(given, "pred"), constant("i32", 0), constant("i32", size)))
    return b.widen(b.intrinsic("llvm.umin", state.value(given, "u32"), constant("i32", size)))


def _read_parts(state: State, access: Access, lengths: Value) -> list[Value]:
    """Lanes that read all their bytes, then those that read a part of them, byte for byte; the rest is zero."""
    b, size = state.b, access.size
    everything = b.and_(access.on, b.mask_word(b.is_("eq", lengths, size)))
    reading = b.and_(access.on, b.mask_word(b.is_("ne", lengths, 0)))
    places = [b.variable(constant(access.element, 0, layout.WARP)) for _ in range(access.vector)]
    with b.if_(b.is_("ne", everything, 0)):
        whole = _on(access, everything)
        resolve(state, whole)
        for value, place in zip(copy_in(state, whole), places, strict=True):
            b.store(value, place)
    some = b.and_(reading, b.not_(everything))
    with b.if_(b.is_("ne", some, 0)):
        _read_bytes(state, access, lengths, some, places)
    with b.if_(b.is_("ne", reading, 0)):
        count_request(state, _on(access, reading))
    return [b.load(access.element, place, layout.WARP) for place in places]


def _on(access: Access, lanes: Value) -> Access:
    return Access(access.space, access.element, access.vector, access.size, access.address, lanes)


def _read_bytes(state: State, access: Access, lengths: Value, some: Value, places: list[Value]) -> None:
    b, address = state.b, access.address
    assert isinstance(address, Value)
    if not state.check:
        misplaced = b.and_(some, b.mask_word(b.is_("ne", b.and_(address, access.size - 1), 0)))
        with b.if_(b.is_("ne", misplaced, 0)):
            lane = b.count_trailing_zeros(misplaced)
            number = constant("i64", state.index)
            record_fault(b, state.context, "misaligned", number, lane, b.extract(address, lane))
            b.br(state.fault_label)
            b.label(b.fresh("dead"))
    step = bits_of(access.element) // 8
    for number in range(access.size - 1):
        lanes = b.and_(some, b.mask_word(b.is_("ugt", lengths, number)))
        single = Access("global", "i8", 1, 1, b.add(address, number), lanes)
        resolve(state, single)
        byte = b.resize(copy_in(state, single)[0], access.element)
        place = places[number // step]
        b.store(b.or_(b.load(access.element, place, layout.WARP), b.shl(byte, 8 * (number % step))), place)
