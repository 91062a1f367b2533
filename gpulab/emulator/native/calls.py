"""Native helpers for call variables and frames: loads and stores in the lanes' own memory that are no requests.

``load_lanes_BITS(context, addresses, values, mask, info)`` and ``store_lanes_BITS`` move elements of so many bits between
the places of the lanes of `mask` and `values`, which has 32 elements for each of the access's vector. They return 1, or 0
after they have recorded a fault. Code that saves registers at calls has many of them, so they are called, not inlined.
"""

from __future__ import annotations

from gpulab.emulator.layout import WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, constant

WIDTHS = (8, 16, 32, 64)
_PARAMETERS = (("context", "ptr"), ("addresses", "ptr"), ("values", "ptr"), ("mask", "i32"), ("info", "i64"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module that has ``resolve_local``; returns their names."""
    names = []
    for bits in WIDTHS:
        for verb in ("load", "store"):
            names.append(f"{verb}_lanes_{bits}")
            _define(module, names[-1], bits, verb == "store")
    return tuple(names)


def _define(module: IrModule, name: str, bits: int, stores: bool) -> None:
    b = Builder(module, name, "i32", _PARAMETERS)
    context, addresses, values = (b.argument(each, "ptr") for each in ("context", "addresses", "values"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    hosts = b.alloca("i64", WARP)
    with b.if_(b.is_("eq", b.call("resolve_local", "i32", context, addresses, hosts, mask, info), 0)):
        b.ret(constant("i32", 0))
        b.label(b.fresh("dead"))
    count = b.lshr(b.and_(info, 255), (bits // 8).bit_length() - 1)
    number = b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", number)
        b.go_if(b.compare("uge", now, count), leave)
        b.store(b.add(now, 1), number)
        row = b.offset(values, b.mul(now, WARP * bits // 8))
        with b.bits(mask) as lane:
            place = b.resize(lane, "i64")
            host = b.load("i64", b.offset(hosts, b.mul(place, 8)))
            memory = b.cast("inttoptr", b.add(host, b.mul(now, bits // 8)), "ptr")
            value = b.offset(row, b.mul(place, bits // 8))
            source, destination = (value, memory) if stores else (memory, value)
            b.store(b.load(f"i{bits}", source, align=bits // 8), destination, align=bits // 8)
    b.ret(constant("i32", 1))
    b.finish()
