"""How a value can vary over the lanes of a warp, and what a launch's block says about thread indices.

A *shape* is a pair of strides or `VECTOR`. With a pair, lane l holds ``base + (l % w) * s0 + (l // w) * s1``, so the
register is kept as scalars; (0, 0) is uniform. A stride is a known int or `DYNAMIC` (known only at run time). The width w
follows from the block: 32, or 16, 8, 4, 2 for blocks that are so wide in x.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

DYNAMIC = "dynamic"
VECTOR = None
UNIFORM = (0, 0)
Stride = int | str
Shape = tuple[Stride, Stride] | None


@dataclass(frozen=True, slots=True)
class BlockShape:
    """What a launch's block says about thread indices: the width w and the shapes of `%tid`."""

    width: int
    tid: tuple[Shape, Shape, Shape]

    @classmethod
    @functools.lru_cache(maxsize=256)
    def of(cls, block: tuple[int, int, int]) -> BlockShape:
        """The block shape of a block of so many threads in x, y, z."""
        x, y, z = block
        if y * z == 1:
            return cls(32, ((1, 0), UNIFORM, UNIFORM))
        if x % 32 == 0:
            return cls(32, ((1, 0), UNIFORM, UNIFORM))
        if 32 % x:
            return cls(32, (VECTOR, VECTOR, VECTOR))
        whole_rows = z == 1 or y % (32 // x) == 0
        if x == 1:
            return cls(32, (UNIFORM, (1, 0), UNIFORM) if whole_rows else (UNIFORM, VECTOR, VECTOR))
        return cls(x, ((1, 0), (0, 1), UNIFORM) if whole_rows else ((1, 0), VECTOR, VECTOR))

    @property
    def laneid(self) -> Shape:
        """Shape of `%laneid`."""
        return (1, 0) if self.width == 32 else (1, self.width)
