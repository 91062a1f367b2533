"""The elements of 32 neighboring short vectors, to and from one vector for each element; the words of 128 bits."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import Builder, Value


def split(b: Builder, whole: Value, vector: int) -> list[Value]:
    """The elements of 32 neighboring vectors, element by element."""
    if vector == 1:
        return [whole]
    return [b.shuffle(whole, whole, [lane * vector + number for lane in range(32)]) for number in range(vector)]


def joined(b: Builder, values: list[Value]) -> Value:
    """32 neighboring vectors from their elements."""
    vector = len(values)
    if vector == 1:
        return values[0]
    parts = values
    while len(parts) > 1:
        parts = [b.shuffle(x, y, list(range(2 * x.lanes))) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    order = [number * 32 + lane for lane in range(32) for number in range(vector)]
    return b.shuffle(parts[0], parts[0], order)


def words(b: Builder, type_name: str | None, values: list[Value]) -> list[Value]:
    """What a store moves: 128 bits in two parts, the lower one first, so that the host's arrays need no such alignment."""
    if type_name != "b128":
        return values
    return [b.resize(part, "i64") for part in (values[0], b.lshr(values[0], 64))]


def whole(b: Builder, type_name: str | None, values: list[Value]) -> list[Value]:
    """The values of a load's destinations: 128 bits from their two parts, all else as it is."""
    if type_name != "b128":
        return values
    low, high = (b.resize(value, "i128") for value in values)
    return [b.or_(low, b.shl(high, 64))]
