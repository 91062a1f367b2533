"""Accesses that leave the shared array they are meant for, but not shared memory.

``i32 check_extent(context, addresses, mask, info, shared, start, room)``: the lanes that do, after they are noted; `shared` is where
shared memory begins, `start` and `room` are the place of the array in it (a room of -1 goes to the end).
``check_left_out(context, hosts, lanes)`` gives lanes the address of memory that has no meaning, zeroed, instead of their own.
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import KINDS, own, own_word
from gpulab.emulator.layout import INSTRUCTION_SHIFT, WARP, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant

NOWHERE_BYTES = 64


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns the names that kernels import."""
    _define_extent(module)
    _define_left_out(module)
    return "check_extent", "check_left_out"


def _define_extent(module: IrModule) -> None:
    parameters = (("context", "ptr"), ("addresses", "ptr"), ("mask", "i32"), ("info", "i64"))
    place = (("shared", "i64"), ("start", "i64"), ("room", "i64"))
    b = Builder(module, "check_extent", "i32", (*parameters, *place))
    context, info, start, room = (b.argument(name, kind) for name, kind in (*parameters[::3], *place[1:]))
    size, all_bytes = b.and_(info, 255), get(b, context, "shared_bytes")
    room = b.select(b.is_("slt", room, 0), b.sub(all_bytes, start), room)
    addresses = b.load("i64", b.argument("addresses", "ptr"), WARP)
    offsets = b.sub(addresses, b.argument("shared", "i64"))
    in_shared = _within(b, offsets, b.sub(all_bytes, size))
    in_array = _within(b, b.sub(offsets, start), b.sub(room, size))
    beyond = b.and_(b.argument("mask", "i32"), b.mask_word(b.and_(in_shared, b.not_(in_array))))
    first, zero = b.mul(get(b, context, "warp"), WARP), constant("i64", 0)
    kind, site = constant("i64", KINDS["beyond its array"]), b.lshr(info, INSTRUCTION_SHIFT)
    with b.bits(beyond) as lane:
        wide = b.resize(lane, "i64")
        address = b.load("i64", b.offset(b.argument("addresses", "ptr"), b.mul(wide, 8)))
        b.call("note", None, context, kind, site, zero, b.add(first, wide), address, zero, zero)
    b.ret(beyond)
    b.finish()


def _within(b: Builder, offsets: Value, last: Value) -> Value:
    """Whether offsets are from 0 to the last one at which the access has room; there may be none."""
    return b.and_(b.compare("ule", offsets, last), b.is_("sge", last, 0))


def _define_left_out(module: IrModule) -> None:
    parameters = (("context", "ptr"), ("hosts", "ptr"), ("lanes", "i32"))
    b = Builder(module, "check_left_out", "void", parameters)
    context, hosts, lanes = (b.argument(name, kind) for name, kind in parameters)
    with b.bits(lanes) as lane:
        left_out(b, own(b, context), b.offset(hosts, b.mul(b.resize(lane, "i64"), 8)))
    b.ret()
    b.finish()


def left_out(b: Builder, structure: Value, host: Value) -> None:
    """Put the address of memory that has no meaning, zeroed, where a lane's own would be."""
    nowhere = own_word(b, structure, "nowhere", "ptr")
    b.store(constant("i8", 0, NOWHERE_BYTES), nowhere)
    b.store(nowhere, host)
