"""Native helpers that turn virtual addresses into host addresses, with the checks of every lane.

``resolve_SPACE(context, addresses, hosts, mask, info)`` reads 32 virtual addresses and writes 32 host addresses for the
lanes of `mask`. It returns 1, or 0 after it has recorded the fault of the lowest offending lane in the context. Nothing
is loaded or stored here, so a faulting instruction has no effect.
"""

from __future__ import annotations

from gpulab.emulator.layout import FAULT_CODES, INSTRUCTION_SHIFT, STORE, WARP, get, put
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.emulator.memory import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BITS

SPACES = ("global", "shared", "local", "generic", "param")
_PARAMETERS = (("context", "ptr"), ("addresses", "ptr"), ("hosts", "ptr"), ("mask", "i32"), ("info", "i64"))
_ROW_BYTES = 64


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    for space in SPACES:
        _define_resolve(module, space)
    return tuple(f"resolve_{space}" for space in SPACES)


def window_row(b: Builder, context: Value, address: Value) -> Value:
    """Pointer to the row of the window table for an address; the empty last row if there is none."""
    number = b.lshr(address, WINDOW_BITS)
    inside = b.intrinsic("llvm.umin", number, get(b, context, "last_window"))
    return b.offset(get(b, context, "windows", "ptr"), b.mul(inside, _ROW_BYTES))


def row_field(b: Builder, row: Value, name: str) -> Value:
    """A field of a row: base, delta, room, store_room, read, written."""
    return b.load("i64", b.offset(row, row_place(name)))


def row_place(name: str) -> int:
    """Where a row has a field, in bytes."""
    return 8 * ("base", "delta", "room", "store_room", "read", "written").index(name)


def record_fault(
    b: Builder, context: Value, kind: str | Value, instruction: Value, lane: Value, address: Value
) -> None:
    """Write a fault into the context; its kind is a name or a code."""
    put(b, context, "fault_kind", constant("i64", FAULT_CODES[kind]) if isinstance(kind, str) else kind)
    put(b, context, "fault_lane", lane)
    put(b, context, "fault_address", address)
    record_place(b, context, instruction)


def record_place(b: Builder, context: Value, instruction: Value) -> None:
    """Write into the context where a warp is."""
    put(b, context, "fault_instruction", instruction)
    put(b, context, "fault_block", get(b, context, "block"))
    put(b, context, "fault_warp", get(b, context, "warp"))


def _define_resolve(module: IrModule, space: str) -> None:
    b = Builder(module, f"resolve_{space}", "i32", _PARAMETERS)
    context, addresses, hosts = (b.argument(name, "ptr") for name in ("context", "addresses", "hosts"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    size = b.and_(info, 255)
    if space in ("global", "generic"):
        _all_in_one_window(b, context, addresses, hosts, mask, info)
    elif space == "shared":
        _all_in_shared(b, context, addresses, hosts, mask, size)
    with b.bits(mask) as lane:
        place = b.mul(b.resize(lane, "i64"), 8)
        address = b.load("i64", b.offset(addresses, place))
        room, offset, host = place_of(b, context, space, address, lane, info)
        bad = b.fresh("bad")
        fits = b.and_(b.compare("ule", offset, b.sub(room, size)), b.compare("sge", room, size))
        aligned = b.is_("eq", b.and_(address, b.sub(size, 1)), 0)
        ok = b.fresh("ok")
        b.cond(b.and_(fits, aligned), ok, bad)
        b.label(bad)
        instruction = b.lshr(info, INSTRUCTION_SHIFT)
        with b.if_(fits):
            record_fault(b, context, "misaligned", instruction, lane, address)
            b.ret(constant("i32", 0))
            b.label(b.fresh("dead"))
        record_fault(b, context, "out-of-bounds", instruction, lane, address)
        b.ret(constant("i32", 0))
        b.label(ok)
        b.store(b.add(host, offset), b.offset(hosts, place))
    b.ret(constant("i32", 1))
    b.finish()


def _all_in_one_window(b: Builder, context: Value, addresses: Value, hosts: Value, mask: Value, info: Value) -> None:
    """Check 32 lanes at once against the window of the first; falls through to the loop if that doesn't settle it."""
    first = b.count_trailing_zeros(b.or_(mask, constant("i32", 1 << 31)))
    row = window_row(b, context, b.load("i64", b.offset(addresses, b.mul(b.resize(first, "i64"), 8))))
    size = b.and_(info, 255)
    room = b.sub(room_for(b, row, info), size)
    vector = b.load("i64", addresses, WARP)
    offset = b.sub(vector, row_field(b, row, "base"))
    fits = b.compare("ule", offset, b.intrinsic("llvm.smax", room, constant("i64", -1)))
    _settle(b, vector, fits, b.is_("sge", room, 0), size, mask, hosts, row_field(b, row, "delta"))


def _all_in_shared(b: Builder, context: Value, addresses: Value, hosts: Value, mask: Value, size: Value) -> None:
    room = b.sub(get(b, context, "shared_bytes"), size)
    vector = b.load("i64", addresses, WARP)
    fits = b.compare("ule", vector, room)
    _settle(b, vector, fits, b.is_("sge", room, 0), size, mask, hosts, get(b, context, "shared"))


def _settle(
    b: Builder, vector: Value, fits: Value, has_room: Value, size: Value, mask: Value, hosts: Value, delta: Value
) -> None:
    aligned = b.is_("eq", b.and_(vector, b.sub(size, 1)), 0)
    good = b.mask_word(b.and_(fits, aligned))
    with b.if_(b.and_(b.is_("eq", b.and_(mask, b.not_(good)), 0), has_room)):
        b.store(b.add(vector, delta), hosts)
        b.ret(constant("i32", 1))
        b.label(b.fresh("dead"))


def room_for(b: Builder, row: Value, info: Value) -> Value:
    """Bytes that an access may use of a window: none of what it must not store to."""
    stores = b.is_("ne", b.and_(info, STORE), 0)
    return b.select(stores, row_field(b, row, "store_room"), row_field(b, row, "room"))


def place_of(
    b: Builder, context: Value, space: str, address: Value, lane: Value, info: Value
) -> tuple[Value, Value, Value]:
    """Bytes of the object that an address points into, offset in it, host address of the object."""
    if space == "shared":
        return get(b, context, "shared_bytes"), address, get(b, context, "shared")
    if space == "param":
        return _parameters(b, context, address, info)
    if space == "local":
        return _local(b, context, address, lane)
    row = window_row(b, context, address)
    base = row_field(b, row, "base")
    host = b.add(base, row_field(b, row, "delta"))
    found = room_for(b, row, info), b.sub(address, base), host
    if space == "generic":
        window = b.lshr(address, WINDOW_BITS)
        shared = get(b, context, "shared_bytes"), b.sub(address, SHARED_WINDOW), get(b, context, "shared")
        local = _local(b, context, b.sub(address, LOCAL_WINDOW), lane)
        parameters = _parameters(b, context, b.sub(address, PARAMETER_WINDOW), info)
        for number, other in ((SHARED_WINDOW, shared), (LOCAL_WINDOW, local), (PARAMETER_WINDOW, parameters)):
            here = b.is_("eq", window, number >> WINDOW_BITS)
            found = tuple(b.select(here, mine, was) for mine, was in zip(other, found, strict=True))
    return found


def _parameters(b: Builder, context: Value, offset: Value, info: Value) -> tuple[Value, Value, Value]:
    """The kernel's parameters, in which no store has room."""
    stores = b.is_("ne", b.and_(info, STORE), 0)
    room = b.select(stores, constant("i64", 0), get(b, context, "param_bytes"))
    return room, offset, get(b, context, "params")


def _local(b: Builder, context: Value, offset: Value, lane: Value) -> tuple[Value, Value, Value]:
    size = get(b, context, "local_bytes")
    return size, offset, b.add(get(b, context, "warp_local"), b.mul(b.resize(lane, "i64"), size))
