"""Barriers in shared memory; `mbarrier` says what their bits are, `reference.mbarrier` what is done to them."""

from __future__ import annotations

from gpulab.emulator import layout as places
from gpulab.emulator import mbarrier as layout
from gpulab.emulator.checking import hooks
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.lower.access import Access, resolve
from gpulab.emulator.lower.control import fault_if
from gpulab.emulator.lower.count import count_request
from gpulab.emulator.lower.table import lowers
from gpulab.emulator.lower.values import State
from gpulab.ptx.syntax import Operand


@lowers("mbarrier")
def mbarrier(state: State) -> None:
    b = state.b
    if state.form.mode == "pending_count":
        destination, source = state.instruction.operands
        state.write(destination, b.resize(b.and_(state.value(source, "b64"), layout.MOST_ARRIVALS), "i32"), "u32")
    else:
        operate(state)


def operate(state: State) -> None:
    """Lower an operation on the object."""
    b = state.b
    if state.guard is None:
        _operate(state)
        return
    with b.if_(b.is_("ne", state.on(), 0)):
        _operate(state)


def _operate(state: State) -> None:
    b, form, operands = state.b, state.form, state.instruction.operands
    position = next(number for number, role in enumerate(form.roles) if role.shape == "address")
    waits = form.mode in layout.WAITS
    flags = 0 if waits else places.STORE | places.ATOMIC
    access = Access(form.space or "", "i64", 1, 8, state.address(operands[position]), state.on(), flags)
    if waits:
        given = [b.widen(state.value(operands[2], form.roles[2].type))]
    else:
        given = [_amount(state, each) for each in layout.amounts(state.instruction, form)]
    kept = [b.variable(each) for each in given]
    resolve(state, access)
    count_request(state, access)
    if waits:
        _wait(state, access, kept[0])
    else:
        _change(state, access, kept)


def _change(state: State, access: Access, kept: list[Value]) -> None:
    """Lane after lane, each on what the one before left."""
    b, form = state.b, state.form
    results = b.variable(constant("i64", 0, places.WARP))
    with b.bits(access.on) as lane:
        wide = b.resize(lane, "i64")
        host = _host(state, wide)
        word = b.load("i64", host)
        arrivals, transactions = (b.resize(b.load("i32", b.offset(each, b.mul(wide, 4))), "i64") for each in kept)
        after, wrong = _changed(state, word, arrivals, transactions)
        fault_if(state, wrong, "barrier/mbarrier", b.shl(constant("i32", 1), lane))
        if form.mode in layout.ARRIVALS or form.opcode == "cp":
            flipped = b.compare("ne", b.lshr(after, layout.PHASE_AT), b.lshr(word, layout.PHASE_AT))
            hooks.meet(state, wide, flipped)
        b.store(after, host)
        b.store(word, b.offset(results, b.mul(wide, 8)))
    if form.mode in layout.ARRIVALS:
        state.write(state.instruction.operands[0], b.load("i64", results, places.WARP), "b64")


def _amount(state: State, given: Operand | int) -> Value:
    value = constant("i32", given) if isinstance(given, int) else state.value(given, "u32")
    return state.b.widen(value)


def _host(state: State, lane: Value) -> Value:
    b = state.b
    return b.cast("inttoptr", b.load("i64", b.offset(state.buffers["hosts"], b.mul(lane, 8))), "ptr")


def _is_invalid(state: State, word: Value) -> Value:
    return state.b.is_("eq", state.b.and_(word, 1 << layout.VALID_AT), 0)


def _changed(state: State, word: Value, arrivals: Value, transactions: Value) -> tuple[Value, Value]:
    """The object after an operation of one lane, and whether it must not be done."""
    b, form = state.b, state.form
    zero = constant("i64", 0)
    if form.mode == "init":
        return _packed(state, arrivals, arrivals, zero, zero), b.is_(
            "ugt", b.sub(arrivals, 1), layout.MOST_ARRIVALS - 1
        )
    wrong = _is_invalid(state, word)
    if form.mode == "inval":
        return zero, wrong
    waiting = b.and_(word, layout.MOST_ARRIVALS)
    expected = b.and_(b.lshr(word, layout.EXPECTED_AT), layout.MOST_ARRIVALS)
    phase, tx = b.lshr(word, layout.PHASE_AT), b.lshr(word, layout.TRANSACTIONS_AT)
    tx = b.sub(tx, transactions) if form.mode == "complete_tx" else b.add(tx, transactions)
    tx = b.and_(tx, layout.TRANSACTION_MASK)
    wrong = b.or_(wrong, b.compare("uge" if form.operation == "noComplete" else "ugt", arrivals, waiting))
    waiting = b.sub(waiting, arrivals)
    if form.mode == "arrive_drop":
        expected = b.sub(expected, arrivals)
    if form.mode != "expect_tx":
        complete = b.is_("eq", b.or_(waiting, tx), 0)
        waiting = b.select(complete, expected, waiting)
        phase = b.xor(phase, b.resize(complete, "i64"))
    return _packed(state, waiting, expected, tx, phase), wrong


def _packed(state: State, waiting: Value, expected: Value, transactions: Value, phase: Value) -> Value:
    b = state.b
    word = b.or_(b.or_(waiting, 1 << layout.VALID_AT), b.shl(expected, layout.EXPECTED_AT))
    return b.or_(b.or_(word, b.shl(transactions, layout.TRANSACTIONS_AT)), b.shl(phase, layout.PHASE_AT))


def _wait(state: State, access: Access, given: Value) -> None:
    b, parity = state.b, state.form.operation == "parity"
    complete = b.variable(constant("i32", 0))
    with b.bits(access.on) as lane:
        wide = b.resize(lane, "i64")
        word = b.load("i64", _host(state, wide))
        bit = b.shl(constant("i32", 1), lane)
        fault_if(state, _is_invalid(state, word), "barrier/mbarrier", bit)
        if parity:
            waited = b.resize(b.and_(b.load("i32", b.offset(given, b.mul(wide, 4))), 1), "i64")
        else:
            waited = b.lshr(b.load("i64", b.offset(given, b.mul(wide, 8))), layout.PHASE_AT)
        differs = b.compare("ne", b.lshr(word, layout.PHASE_AT), waited)
        hooks.met(state, wide, differs)
        b.store(b.or_(b.load("i32", complete), b.select(differs, bit, constant("i32", 0))), complete)
    state.write(state.instruction.operands[0], b.mask_vector(b.load("i32", complete)), "pred")
