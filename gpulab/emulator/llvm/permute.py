"""Lanes of a vector in an order that only the running code knows."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import Builder, Value, constant


def permuted(b: Builder, values: Value, lanes: Value) -> Value:
    """For each of 32 lanes the value, i32, of the lane that `lanes` says."""
    kept = b.variable(values)
    offsets = b.shl(b.resize(b.and_(lanes, 31), "i64"), 2)
    pointers = b.assign("ptr", 32, f"getelementptr i8, {kept.ir}, {offsets.ir}")
    name = "llvm.masked.gather.v32i32.v32p0"
    b.declare(name, "<32 x i32>", "<32 x ptr>, <32 x i1>, <32 x i32>")
    every = constant("i1", 1, 32)
    return b.assign("i32", 32, f"call <32 x i32> @{name}(<32 x ptr> align 4 {pointers.text}, {every.ir}, {values.ir})")
