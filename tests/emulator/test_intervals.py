"""Bounds of registers: what the analysis must find, and that no register ever leaves them."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.emulator import load
from gpulab.emulator.analysis.intervals import Interval, intervals
from gpulab.ptx import parse


def _bounds(body: str) -> dict[str, Interval]:
    module = parse(kernel("u64 a", body))
    return intervals(load(module, module.entries[0]))


@pytest.mark.parametrize(
    ("line", "register", "expected"),
    [
        # Numba's guards against negative indices
        ("cvt.s64.s32 %rd2, %r1; setp.lt.s64 %p1, %rd2, 0;", "%p1", (0, 0)),
        ("setp.lt.s32 %p1, %r1, 0; selp.b64 %rd2, 17, 0, %p1;", "%rd2", (0, 0)),
        ("cvt.s64.s32 %rd2, %r1; and.b64 %rd3, %rd2, -9223372036854775808;", "%rd3", (0, 0)),
        ("mul.wide.s32 %rd2, %r2, %r3; shr.s64 %rd3, %rd2, 63;", "%rd3", (0, 0)),
        # Limits of blocks and grids: 1,023 threads before the last of a block, 2**31 - 2 blocks before the last
        ("mul.wide.s32 %rd2, %r2, %r3;", "%rd2", (0, 1024 * (2**31 - 2))),
        ("mad.lo.s32 %r4, %r2, %r3, %r1;", "%r4", None),  # may wrap
        ("sub.s32 %r4, %r1, 1024;", "%r4", (-1024, -1)),
        ("mul.lo.s32 %r4, %r1, 2097152;", "%r4", (0, 1023 * 2097152)),
        ("mul.lo.s32 %r4, %r1, 2099202;", "%r4", (0, 2**31 - 2)),
        ("mul.lo.s32 %r4, %r1, 2099203;", "%r4", None),  # 1023 * 2099203 is above 2**31
        ("sub.s32 %r4, %r1, 5; cvt.u64.u32 %rd2, %r4;", "%rd2", (0, 2**32 - 1)),
        # Whatever the argument is
        ("ld.global.u32 %r4, [%rd1]; and.b32 %r5, %r4, 255;", "%r5", (0, 255)),
        ("ld.global.u32 %r4, [%rd1]; shr.u32 %r5, %r4, 28;", "%r5", (0, 15)),
        ("ld.global.u32 %r4, [%rd1]; shr.s32 %r5, %r4, 28;", "%r5", (-8, 7)),
        ("ld.global.u32 %r4, [%rd1]; rem.u32 %r5, %r4, 10;", "%r5", (0, 9)),
        ("ld.global.u32 %r4, [%rd1]; cvt.s64.s32 %rd2, %r4;", "%rd2", (-(2**31), 2**31 - 1)),
        ("ld.global.u32 %r4, [%rd1]; min.u32 %r5, %r4, 7;", "%r5", (0, 7)),
        ("ld.global.u32 %r4, [%rd1]; min.s32 %r5, %r4, 7;", "%r5", (-(2**31), 7)),
        ("ld.global.u32 %r4, [%rd1]; add.s32 %r5, %r4, 1;", "%r5", None),
        # Two writes; a write that may not be reached; a loop
        ("mov.u32 %r4, 3; mov.u32 %r4, 9;", "%r4", (3, 9)),
        ("setp.eq.s32 %p1, %r1, 0; @%p1 mov.u32 %r4, 3; add.u32 %r5, %r4, 1;", "%r5", (1, 4)),
        ("mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 bra L;", "%r4", None),
    ],
)  # fmt: skip
def test_what_is_known(line: str, register: str, expected: Interval | None) -> None:
    start = "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;"
    assert _bounds(f"{start} {line}").get(register) == expected


_OPERATIONS = ("add.s32", "sub.u32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "shl.b32",
               "shr.s32", "shr.u32", "div.s32", "rem.u32", "min.u32", "max.s32")  # fmt: skip
_CONSTANTS = (0, 1, 2, 3, 7, 31, 255, 1024, 65535, 2**31 - 1, -1, -2, -1024, -(2**31))


@pytest.mark.parametrize("seed", range(12))
def test_registers_stay_within_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines, count = ["mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid; mov.u32 %r3, %ntid.x;"], 30
    for number in range(4, count):
        operation = str(rng.choice(_OPERATIONS))
        first = f"%r{rng.integers(1, number)}"
        second = f"%r{rng.integers(1, number)}" if rng.random() < 0.5 else str(rng.choice(_CONSTANTS))
        if operation[:3] in ("div", "rem"):
            second = str(rng.integers(1, 50))
        elif operation[:2] == "sh":
            second = str(rng.integers(0, 32))
        lines.append(f"{operation} %r{number}, {first}, {second};")
    body = "ld.param.u64 %rd1, [a]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd4, %r0, 4, %rd1;\n" + "\n".join(lines)
    bounds = _bounds(body)
    for number in range(1, count):
        body += f"\nst.global.u32 [%rd4+{4 * 64 * number}], %r{number};"
    found = np.zeros((count, 64), np.int32)
    run("reference", kernel("u64 a", body), found, block=64)
    known = [number for number in range(1, count) if f"%r{number}" in bounds]
    assert len(known) > 8
    for number in known:
        low, high = bounds[f"%r{number}"]
        assert low <= found[number].min() and found[number].max() <= high, body
