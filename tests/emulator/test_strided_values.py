"""Values that grow evenly from lane to lane: engines may keep them as base and stride, and must not be caught by a wrap."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import kernel, run

WORD, LONG = 2**32, 2**64

# %r1 is the thread, %r2 the thread less 9; the result is %rd7.
_LINES = {
    "mul.wide.u32 %rd7, %r1, -858993459;": lambda t: t * (WORD - 858993459),
    "mul.wide.s32 %rd7, %r1, 0xFFFFFFFB;": lambda t: -5 * t,
    "mul.wide.u32 %rd7, %r2, 4;": lambda t: (t - 9) % WORD * 4,
    "mul.wide.s32 %rd7, %r2, -7;": lambda t: -7 * (t - 9),
    "mad.wide.u32 %rd7, %r1, -3, %rd8;": lambda t: t * (WORD - 3) + 5,
    "mad.wide.u32 %rd7, -3, %r1, -1;": lambda t: t * (WORD - 3) - 1,
    "add.u32 %r3, %r1, -16; cvt.u64.u32 %rd7, %r3;": lambda t: (t - 16) % WORD,
    "add.u32 %r3, %r1, -16; cvt.s64.s32 %rd7, %r3;": lambda t: t - 16,
    "add.u32 %r3, %r1, 0x7FFFFFF0; cvt.s64.s32 %rd7, %r3;": lambda t: 0x7FFFFFF0 + t - (WORD if t >= 16 else 0),
    "mul.lo.s32 %r3, %r1, 0x40000000; mul.wide.s32 %rd7, %r3, 4;": lambda t: (0, WORD, -2 * WORD, -WORD)[t % 4],
    "neg.s32 %r3, %r1; cvt.u64.u32 %rd7, %r3;": lambda t: -t % WORD,
    "shl.b32 %r3, %r1, 28; cvt.u64.u32 %rd7, %r3;": lambda t: (t << 28) % WORD,
    "cvt.s64.s32 %rd6, %r2; shr.s64 %rd7, %rd6, 63; and.b64 %rd7, %rd7, 100; add.s64 %rd7, %rd7, %rd6;": lambda t: t - 9 + (100 if t < 9 else 0),
    "cvt.u64.u32 %rd6, %r1; sub.s64 %rd7, 3, %rd6;": lambda t: 3 - t,
    "cvt.u64.u32 %rd6, %r1; mul.lo.s64 %rd7, %rd6, -4611686018427387904;": lambda t: t * -(2**62),
    "mul.hi.u32 %r3, %r1, -858993459; shr.u32 %r3, %r3, 2; mul.lo.s32 %r3, %r3, 5; sub.s32 %r3, %r1, %r3; cvt.u64.u32 %rd7, %r3;": lambda t: t % 5,
    "mul.wide.u32 %rd6, %r1, 3; cvt.s64.s32 %rd7, %rd6;": lambda t: 3 * t,
    "mad.wide.u32 %rd6, %r1, 1, 0x1234FFFFFFF0; cvt.u64.u32 %rd7, %rd6;": lambda t: (t - 16) % WORD,
    "mad.wide.u32 %rd6, %r1, 1, 0x12347FFFFFF0; cvt.s64.s32 %rd7, %rd6;": lambda t: 0x7FFFFFF0 + t - (WORD if t >= 16 else 0),
}  # fmt: skip


@pytest.mark.parametrize("block", [(32, 1), (64, 1), (16, 4), (5, 7)])
def test_strided_values_wrap_where_the_type_does(engine: str, block: tuple[int, int]) -> None:
    threads = block[0] * block[1]
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r4, %tid.y; mov.u32 %r5, %ntid.x; mad.lo.u32 %r6, %r4, %r5, %r1;
    mad.wide.u32 %rd4, %r6, 8, %rd1; sub.u32 %r2, %r1, 9; mov.u64 %rd8, 5;
"""
    for number, line in enumerate(_LINES):
        body += f"    {line} st.global.u64 [%rd4+{8 * threads * number}], %rd7;\n"
    found = np.zeros((len(_LINES), threads), np.uint64)
    run(engine, kernel("u64 a", body), found, block=block)
    for (line, expected), row in zip(_LINES.items(), found.tolist(), strict=True):
        assert row == [expected(thread % block[0]) % LONG for thread in range(threads)], line
