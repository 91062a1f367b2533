"""The elements of 32 neighboring short vectors, to and from one vector for each element."""

from __future__ import annotations

from gpulab.emulator.ir import Builder, Value


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
