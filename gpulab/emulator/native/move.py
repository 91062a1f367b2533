"""Native helpers that move the elements of a request between the lanes' host addresses and 32 lanes in memory.

``copy_in(hosts, values, mask, info)`` and ``copy_out`` serve every access that has no quicker way of its own. The addresses
have been checked before (`native.address`). In `values`, 32 neighboring elements are the first of each lane, the next
32 the second ones, and so on; `copy_in` leaves 0 for lanes that are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.emulator.layout import VECTOR_SHIFT, WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant, constants, mangled, type_text

_PARAMETERS = (("hosts", "ptr"), ("values", "ptr"), ("mask", "i32"), ("info", "i64"))
_ELEMENTS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    for name in ("copy_in", "copy_out"):
        _define(module, name)
    return "copy_in", "copy_out"


def _define(module: IrModule, name: str) -> None:
    b = Builder(module, name, "void", _PARAMETERS)
    hosts, values, mask, info = (b.argument(parameter, kind) for parameter, kind in _PARAMETERS)
    size, shift = b.and_(info, 255), b.and_(b.lshr(info, VECTOR_SHIFT), 3)
    step = b.lshr(size, shift)
    places = b.load("i64", hosts, WARP)
    _whole(b, name, places, values, mask, size, shift)
    if name == "copy_in":
        with _each(b, b.shl(size, 5), 64) as offset:
            b.store(constant("i64", 0, 8), b.offset(values, offset), align=64)
    for width, element in _ELEMENTS.items():
        with b.if_(b.is_("eq", step, width)):
            with _each(b, b.shl(constant("i64", 1), shift), 1) as number:
                distance, here = b.mul(number, width), b.offset(values, b.mul(number, WARP * width))
                move = _move_together if width >= 4 else _move_singly
                move(b, name, element, (hosts, places), distance, here, mask)
            b.ret()
            b.label(b.fresh("dead"))
    b.ret()
    b.finish()


@contextmanager
def _each(b: Builder, end: Value, step: int) -> Iterator[Value]:
    """Code that runs for 0, `step`, … below `end`."""
    place = b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", place)
        b.go_if(b.compare("uge", now, end), leave)
        b.store(b.add(now, step), place)
        yield now


def _whole(b: Builder, name: str, places: Value, values: Value, mask: Value, size: Value, shift: Value) -> None:
    """Neighboring single elements of a full warp are one piece of memory."""
    first = b.extract(places, constant("i32", 0))
    steps = b.mul(constants("i64", list(range(WARP))), b.widen(size))
    near = b.mask_word(b.compare("eq", places, b.add(steps, b.widen(first))))
    with b.if_(b.and_(b.is_("eq", b.and_(near, mask), -1), b.is_("eq", shift, 0))):
        there = b.cast("inttoptr", first, "ptr")
        source, target = (there, values) if name == "copy_in" else (values, there)
        with _each(b, b.shl(size, 5), 32) as offset:
            b.store(b.load("i64", b.offset(source, offset), 4, align=1), b.offset(target, offset), align=1)
        b.ret()
        b.label(b.fresh("dead"))


def _move_together(
    b: Builder, name: str, element: str, hosts: tuple[Value, Value], distance: Value, here: Value, mask: Value
) -> None:
    kind = type_text(element, WARP)
    lanes = b.mask_vector(mask)
    pointers = b.cast("inttoptr", b.add(hosts[1], b.widen(distance)), "ptr")
    align = f"align {int(element[1:]) // 8}"
    if name == "copy_in":
        full = f"llvm.masked.gather.{mangled(element, WARP)}.v{WARP}p0"
        b.declare(full, kind, f"<{WARP} x ptr>, <{WARP} x i1>, {kind}")
        zero = constant(element, 0, WARP)
        text = f"call {kind} @{full}(<{WARP} x ptr> {align} {pointers.text}, {lanes.ir}, {zero.ir})"
        b.store(b.assign(element, WARP, text), here)
        return
    # From the lowest lane to the highest, which wins where addresses are equal.
    full = f"llvm.masked.scatter.{mangled(element, WARP)}.v{WARP}p0"
    b.declare(full, "void", f"{kind}, <{WARP} x ptr>, <{WARP} x i1>")
    b.emit(f"call void @{full}({b.load(element, here, WARP).ir}, <{WARP} x ptr> {align} {pointers.text}, {lanes.ir})")


def _move_singly(
    b: Builder, name: str, element: str, hosts: tuple[Value, Value], distance: Value, here: Value, mask: Value
) -> None:
    with b.bits(mask) as lane:
        wide = b.resize(lane, "i64")
        address = b.add(b.load("i64", b.offset(hosts[0], b.mul(wide, 8))), distance)
        there, lane_place = b.cast("inttoptr", address, "ptr"), b.offset(here, b.mul(wide, int(element[1:]) // 8))
        source, target = (there, lane_place) if name == "copy_in" else (lane_place, there)
        b.store(b.load(element, source), target)
