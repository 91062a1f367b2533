"""An access of a warp: what it is, the check of its lanes, and moving its elements where no quicker way serves."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.emulator import layout
from gpulab.emulator.checking import hooks
from gpulab.emulator.llvm.ir import Value, bits_of, constant
from gpulab.emulator.lower.values import Affine, State


@dataclass(frozen=True, slots=True)
class Access:
    """One memory instruction: space, element type, elements per lane, bytes per lane, address, lanes, flags.

    `row` is where it is counted; with the instruction itself if it is None.
    """

    space: str
    element: str
    vector: int
    size: int
    address: Value | Affine
    on: Value
    flags: int = 0
    row: int | None = None

    def info(self, index: int) -> Value:
        """The word that native helpers take."""
        elements = (self.vector.bit_length() - 1) << layout.VECTOR_SHIFT
        return constant("i64", index << layout.INSTRUCTION_SHIFT | elements | self.flags | self.size)


def resolve(state: State, access: Access, stored: list[Value] | None = None) -> None:
    """Check every lane that is on; host addresses go to a buffer. Faults leave the warp.

    `stored` are the values that a plain store is about to put there, for the check.
    """
    b = state.b
    addresses, hosts = state.buffers["addresses"], state.buffers["hosts"]
    _store_addresses(state, access.address, addresses)
    space = {"const": "global", "call": "local"}.get(access.space, access.space)
    if state.check:
        # Nothing leaves the warp: a faulty lane is noted, and its host address is that of memory of no meaning.
        b.store(constant("i64", 0, 32), hosts, align=64)
        hooks.access(state, space, access, stored)
        return
    ok = b.call(f"resolve_{space}", "i32", state.context, addresses, hosts, access.on, access.info(state.index))
    after = b.fresh("resolved")
    b.cond(b.is_("ne", ok, 0), after, state.fault_label)
    b.label(after)


def _store_addresses(state: State, address: Value | Affine, where: Value) -> None:
    """All lanes' addresses. Where they are affine this is a rare way, so that a call is enough."""
    if isinstance(address, Value) and address.lanes > 1:
        state.b.store(address, where, align=64)
        return
    known = address if isinstance(address, Affine) else Affine(address, (0, 0))
    s0, s1 = (constant("i64", s) if isinstance(s, int) else s for s in known.strides)
    width = constant("i64", state.plan.block_shape.width)
    state.b.call("spread", None, known.base, s0, s1, width, where)


def copy_in(state: State, access: Access) -> list[Value]:
    """The elements at the host addresses that `resolve` found; 0 for lanes that are off."""
    b, values = state.b, state.buffers["values"]
    b.call("copy_in", None, state.buffers["hosts"], values, access.on, access.info(state.index))
    length = 4 * bits_of(access.element)
    return [b.load(access.element, b.offset(values, number * length), 32) for number in range(access.vector)]


def copy_out(state: State, access: Access, values: list[Value]) -> None:
    """Store elements to the host addresses that `resolve` found."""
    b, place = state.b, state.buffers["values"]
    for number, value in enumerate(values):
        b.store(b.widen(value), b.offset(place, number * 4 * bits_of(access.element)), align=32)
    b.call("copy_out", None, state.buffers["hosts"], place, access.on, access.info(state.index))
