"""Counting of memory requests: which native helper counts an access, by what is known of its addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.emulator import layout, native_touch
from gpulab.emulator.ir import Value, constant
from gpulab.emulator.lower_values import Affine, State

if TYPE_CHECKING:
    from gpulab.emulator.lower_memory import Access

_COUNTED = ("global", "shared", "local", "generic")


def count_request(state: State, access: Access) -> None:
    """Add what a request costs to the counters of its instruction; its lanes have passed the fault checks."""
    if not state.count or access.space not in _COUNTED:
        return
    b = state.b
    counters = b.offset(state.constant_get("memory_counters", "ptr"), native_touch.WORD_BYTES * state.index)
    info = access.info(state.index)
    if access.space == "global" and isinstance(access.address, Value) and access.address.lanes == 1:
        b.call("count_uniform", None, state.context, access.address, access.on, counters, info)
        return
    if access.space == "global" and _is_contiguous(state, access):
        general, done = b.fresh("partial"), b.fresh("counted")
        b.go_if(b.is_("ne", access.on, -1), general)
        assert isinstance(access.address, Affine)
        b.call("count_contiguous", None, state.context, access.address.base, counters, info)
        b.br(done)
        b.label(general)
        _count_any(state, access, counters, info)
        b.br(done)
        b.label(done)
        return
    _count_any(state, access, counters, info)


def _is_contiguous(state: State, access: Access) -> bool:
    if not isinstance(access.address, Affine) or access.address.strides[0] != access.size:
        return False
    width = state.plan.block_shape.width
    return width == 32 or access.address.strides[1] == width * access.size


def _count_any(state: State, access: Access, counters: Value, info: Value) -> None:
    b = state.b
    if isinstance(access.address, Affine) and access.space in ("global", "shared"):
        strides = [constant("i64", s) if isinstance(s, int) else s for s in access.address.strides]
        width = constant("i64", state.plan.block_shape.width)
        flagged = b.or_(info, layout.SHARED) if access.space == "shared" else info
        b.call(
            "count_affine", None, state.context, access.address.base, *strides, width, access.on, counters, flagged
        )
        return
    addresses = state.buffers["addresses"]
    b.store(state.vector(access.address), addresses, align=64)
    b.call(f"count_{access.space}", None, state.context, addresses, access.on, counters, info)
