"""Call variables and frames: accesses of the lanes' own memory that are no requests, moved by native helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.emulator import layout
from gpulab.emulator.layout import get, put
from gpulab.emulator.llvm.ir import Value, bits_of
from gpulab.emulator.lower.values import State
from gpulab.ptx.stack import ALLOCATED, FRAME, STACK, STACK_BYTES
from gpulab.ptx.syntax import Register

if TYPE_CHECKING:
    from gpulab.emulator.lower.access import Access


def move_lanes(state: State, access: Access, values: list[Value] | None) -> list[Value]:
    """Store to the lanes' own memory, or load from it, out of line; not counted."""
    b, bits = state.b, bits_of(access.element)
    addresses, place = state.buffers["addresses"], state.buffers["values"]
    b.store(state.vector(access.address), addresses, align=64)
    rows = [b.offset(place, number * layout.WARP * bits // 8) for number in range(access.vector)]
    for row, value in zip(rows, values or (), strict=False):
        b.store(b.widen(value), row, align=64 if bits > 8 else 32)
    helper = f"{'load' if values is None else 'store'}_lanes_{bits}"
    ok = b.call(helper, "i32", state.context, addresses, place, access.on, access.info(state.index))
    after = b.fresh("moved")
    b.cond(b.is_("ne", ok, 0), after, state.fault_label)
    b.label(after)
    return [b.load(access.element, row, 32, align=64 if bits > 8 else 32) for row in rows]


def note_depth(state: State) -> None:
    """Behind an instruction that makes a stack deeper: remember how deep, for the next block must find it cleared."""
    b, destination = state.b, state.instruction.operands[0] if state.instruction.operands else None
    if state.instruction.opcode != "add" or destination not in (Register(FRAME), Register(ALLOCATED)):
        return
    deepest = "llvm.vector.reduce.umax.v32i64"
    b.declare(deepest, "i64", "<32 x i64>")
    top = b.assign("i64", 1, f"call i64 @{deepest}({b.widen(state.value(destination, 'u64')).ir})")
    if destination == Register(FRAME):
        top = b.add(top, state.program.function.variables[STACK].size - STACK_BYTES)
    # What faults behind the end of the stack is not reached.
    top = b.intrinsic("llvm.umin", top, get(b, state.context, "local_bytes"))
    put(b, state.context, "local_used", b.intrinsic("llvm.umax", top, get(b, state.context, "local_used")))
