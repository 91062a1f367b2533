"""Packed integers and floats, 8-bit floats, half sources, and minima with signs: expected values worked by hand."""

from __future__ import annotations

from math import inf, nan

from instruction_suite import Bits, Case, case

ALL32 = 0xFFFFFFFF
ULP = 2.0**-23
ONE, TWO_, HALF = 0x3F800000, 0x40000000, 0x3F000000
NAN32 = 0x7FFFFFFF


def two(high: int, low: int) -> Bits:
    """Two f32 patterns as f32x2."""
    return Bits(high << 32 | low)


PACKED: tuple[Case, ...] = (
    case("add.u16x2", "u16x2 u16x2 -> u16x2", (0x0001FFFF, 0x00010001, 0x00020000), (0xFFFF8000, 0x00018000, 0)),
    case("add.s16x2", "s16x2 s16x2 -> s16x2", (0x7FFFFFFF, 0x00010001, 0x80000000)),
    case("min.u16x2", "u16x2 u16x2 -> u16x2", (0xFFFF0001, 0x00018000, 0x00010001)),
    case("min.s16x2", "s16x2 s16x2 -> s16x2", (0xFFFF0001, 0x00018000, 0xFFFF8000)),
    case("max.s16x2", "s16x2 s16x2 -> s16x2", (0xFFFF0001, 0x00018000, 0x00010001)),
    case("max.s16x2.relu", "s16x2 s16x2 -> s16x2", (0xFFFF0005, 0xFFFE8000, 0x00000005)),
    case("min.relu.s16x2", "s16x2 s16x2 -> s16x2", (0x00030001, 0x00028000, 0x00020000)),
    case("min.s32.relu", "s32 s32 -> s32", (-5, 7, 0), (5, 7, 5)),
    case("max.relu.s32", "s32 s32 -> s32", (-5, -7, 0), (-(2**31), 2, 2)),
    # Place of the n-th set bit: from bit 3 up, from bit 8 down, of the base alone (PTX ISA, fns).
    case(
        "fns.b32",
        "b32 b32 s32 -> b32",
        (0b1_0110_1000, 3, 1, 3), (0b1_0110_1000, 3, 2, 5), (0b1_0110_1000, 4, 1, 5), (0b1_0110_1000, 3, 4, 8),
        (0b1_0110_1000, 3, 5, ALL32), (0b1_0110_1000, 8, -1, 8), (0b1_0110_1000, 8, -2, 6), (0b1_0110_1000, 4, -1, 3),
        (0b1_0110_1000, 4, -2, ALL32), (0b1_0110_1000, 5, 0, 5), (0b1_0110_1000, 4, 0, ALL32), (ALL32, 31, -32, 0),
        (ALL32, 0, 32, 31), (ALL32, 0, 33, ALL32), (0, 0, 1, ALL32), (ALL32, 32, 1, ALL32), (ALL32, 0, -(2**31), ALL32),
    ),
    case("add.f32x2", "f32x2 f32x2 -> f32x2", (two(ONE, HALF), two(ONE, HALF), two(TWO_, ONE))),
    case("add.rz.f32x2", "f32x2 f32x2 -> f32x2", (two(ONE, ONE), two(0x337FFFFF, 0xB3000000), two(ONE, 0x3F7FFFFF))),
    case("sub.f32x2", "f32x2 f32x2 -> f32x2", (two(ONE, 0x7F800000), two(HALF, 0x7F800000), two(HALF, NAN32))),
    case("mul.ftz.f32x2", "f32x2 f32x2 -> f32x2", (two(0x80000001, TWO_), two(TWO_, HALF), two(1 << 31, ONE))),
    # 1.5 * 1.5 + 1; the lower half is (1 + ulp) squared minus (1 + 2 ulp): ulp squared, which a rounded product loses.
    case(
        "fma.rn.f32x2",
        "f32x2 f32x2 f32x2 -> f32x2",
        (two(0x3FC00000, ONE + 1), two(0x3FC00000, ONE + 1), two(ONE, 0xBF800002), two(0x40500000, 0x28800000)),
    ),
    case("fma.rp.f32x2", "f32x2 f32x2 f32x2 -> f32x2", (two(ONE, ONE), two(ONE, ONE), two(1, 0x80000001), two(ONE + 1, ONE))),
    case("add.f32.f16", "f16 f32 -> f32", (0.5, 1.0, 1.5), (2.0**-24, 1.0, 1.0), (inf, -inf, nan)),
    case("add.rp.f32.f16", "f16 f32 -> f32", (2.0**-24, 1.0, 1.0 + ULP)),
    case("add.rn.sat.f32.bf16", "bf16 f32 -> f32", (Bits(0x3F80), 1.0, 1.0), (Bits(0xBF80), 0.5, 0.0)),
    case("sub.f32.f16", "f16 f32 -> f32", (0.5, 2.0, -1.5)),
    case("sub.rz.f32.bf16", "bf16 f32 -> f32", (Bits(0x3F80), ULP / 4, 1.0 - ULP / 2)),
    case("fma.rn.f32.f16", "f16 f16 f32 -> f32", (3.0, -0.5, 0.25, -1.25), (65504.0, 65504.0, 0.0, 65504.0**2)),
    case("fma.rm.f32.bf16", "bf16 bf16 f32 -> f32", (Bits(0x3F80), Bits(0x3F80), -(2.0**-30), 1.0 - ULP / 2)),
    case("min.xorsign.abs.f32", "f32 f32 -> f32", (-3.0, 2.0, -2.0), (-3.0, -2.0, 2.0), (3.0, nan, 3.0), (-3.0, nan, -3.0)),
    case("max.NaN.xorsign.abs.f32", "f32 f32 -> f32", (-3.0, 2.0, -3.0), (-3.0, nan, nan), (-0.0, 0.0, -0.0)),
    case("max.f32 # of three", "f32 f32 f32 -> f32", (1.0, nan, 3.0, 3.0), (nan, nan, nan, nan), (-0.0, 0.0, -1.0, 0.0)),
    case("min.abs.f32 # of three", "f32 f32 f32 -> f32", (-1.0, 5.0, -0.5, 0.5), (-inf, nan, -2.0, 2.0)),
    case("min.NaN.f32 # of three", "f32 f32 f32 -> f32", (1.0, 2.0, nan, nan), (1.0, 2.0, -3.0, -3.0)),
    case("max.ftz.f32 # of three", "f32 f32 f32 -> f32", (-1.0, 2.0**-130, -2.0, 0.0)),
    case("min.xorsign.abs.f16", "f16 f16 -> f16", (-3.0, 2.0, -2.0), (2.0, 3.0, 2.0)),
    case("max.xorsign.abs.bf16x2", "bf16x2 bf16x2 -> bf16x2", (0xBF804000, 0x3F00C040, 0xBF80C040)),
    case("set.lt.u32.f16x2", "f16x2 f16x2 -> u32", (0x3C004000, 0x40003C00, 0xFFFF0000), (0x7E003C00, 0x3C004000, 0xFFFF)),
    case("set.neu.s32.bf16x2", "bf16x2 bf16x2 -> s32", (0x7FC03F80, 0x3F803F80, -65536)),
)  # fmt: skip

# e4m3: bias 7, 3 fraction bits, largest 448 (0x7E), smallest 2**-9; e5m2: bias 15, largest 57344 (0x7B), smallest 2**-16.
EIGHT_BITS: tuple[Case, ...] = (
    case(
        "cvt.rn.satfinite.e4m3x2.f32",
        "f32 f32 -> e4m3x2",
        (1.0, -2.0, 0x38C0), (448.0, 464.0, 0x7E7E), (1e30, -inf, 0x7EFE), (nan, -nan, 0x7F7F), (2.0**-9, 2.0**-10, 0x0100),
        (3 * 2.0**-10, -(2.0**-11), 0x0280), (1.0625, 1.1875, 0x383A), (15 * 2.0**-10, 2.0**-6, 0x0808), (-0.0, 2.0**-140, 0x8000),
    ),
    case(
        "cvt.rn.satfinite.e5m2x2.f32",
        "f32 f32 -> e5m2x2",
        (1.0, -2.0, 0x3CC0), (57344.0, 61440.0, 0x7B7B), (inf, -1e38, 0x7BFB), (nan, 2.0**-16, 0x7F01), (2.0**-17, 3 * 2.0**-17, 0x0002),
        (1.125, 1.375, 0x3C3E), (7 * 2.0**-17, -0.0, 0x0480), (65536.0, 131072.0, 0x7B7B),
    ),
    case("cvt.rn.satfinite.relu.e4m3x2.f32", "f32 f32 -> e4m3x2", (-1.0, 1.0, 0x0038), (nan, -inf, 0x7F00)),
    case("cvt.rn.satfinite.e4m3x2.f16x2", "f16x2 -> e4m3x2", (0x3C00C000, 0x38C0), (0x7C007E00, 0x7E7F), (0x00018001, 0x0080)),
    case("cvt.rn.satfinite.e5m2x2.f16x2", "f16x2 -> e5m2x2", (0x3C803C81, 0x3C3D), (0xFC000080, 0xFB00), (0x00810180, 0x0102)),
    case("cvt.rn.f16x2.e4m3x2", "e4m3x2 -> f16x2", (0x38C0, 0x3C00C000), (0x7EFF, 0x5F007FFF), (0x0181, 0x18009800), (0x0880, 0x24008000)),
    case("cvt.rn.f16x2.e5m2x2", "e5m2x2 -> f16x2", (0x3CC0, 0x3C00C000), (0x7CFD, 0x7C007FFF), (0x0184, 0x01008400)),
    case("cvt.rn.relu.f16x2.e5m2x2", "e5m2x2 -> f16x2", (0xBC3C, 0x00003C00), (0xFCFE, 0x00007FFF)),
    # 1 + 2**-11 lies half way; ten bits stay behind the point.
    case("cvt.rn.tf32.f32", "f32 -> b32", (Bits(0x3F801000), 0x3F800000), (Bits(0x3F803000), 0x3F804000), (inf, 0x7F800000), (nan, NAN32)),
    case("cvt.rz.relu.tf32.f32", "f32 -> b32", (Bits(0x3F801FFF), 0x3F800000), (-1.0, 0), (-inf, 0)),
    case("cvt.rna.satfinite.tf32.f32", "f32 -> b32", (Bits(0x7F7FFFFF), 0x7F7FE000), (-inf, 0xFF7FE000), (1.5, 0x3FC00000)),
    case("cvt.rn.satfinite.f16.f32", "f32 -> f16", (65520.0, 65504.0), (-inf, -65504.0), (nan, nan), (1.0, 1.0)),
    case("cvt.rz.relu.satfinite.bf16.f32", "f32 -> bf16", (inf, Bits(0x7F7F)), (-inf, Bits(0)), (1.5, Bits(0x3FC0))),
    case("cvt.rn.satfinite.f16x2.f32", "f32 f32 -> f16x2", (inf, -1e9, 0x7BFFFBFF)),
    case("cvt.rm.bf16.f32", "f32 -> bf16", (1.0 + ULP, Bits(0x3F80)), (-1.0 - ULP, Bits(0xBF81)), (inf, Bits(0x7F80))),
    case("cvt.rp.bf16.f32", "f32 -> bf16", (1.0 + ULP, Bits(0x3F81)), (-1.0 - ULP, Bits(0xBF80)), (3e38, Bits(0x7F62)), (3.4e38, Bits(0x7F80))),
    case("cvt.rn.ftz.bf16.f32", "f32 -> bf16", (2.0**-127, Bits(0)), (-(2.0**-130), Bits(0x8000)), (2.0, Bits(0x4000))),
    case("cvt.rn.bf16.f16", "f16 -> bf16", (1.0 + 2.0**-8, Bits(0x3F80)), (65504.0, Bits(0x4780))),
    case("cvt.rz.f16.bf16", "bf16 -> f16", (Bits(0x4780), 65504.0), (Bits(0x3381), 2.0**-24), (Bits(0xBFC0), -1.5)),
    case("cvt.rni.bf16.bf16", "bf16 -> bf16", (Bits(0x4020), Bits(0x4000)), (Bits(0xBF00), Bits(0x8000)), (Bits(0x4060), Bits(0x4080))),
    case("cvt.rpi.bf16.bf16", "bf16 -> bf16", (Bits(0x4020), Bits(0x4040)), (Bits(0xBF00), Bits(0x8000))),
    case("cvt.rzi.s8.bf16", "bf16 -> s8", (Bits(0xC3C8), -128), (Bits(0x42FE), 127), (Bits(0xC020), -2), text=".reg .b8 t; cvt.rzi.s8.bf16 t, {a}; cvt.s16.s8 {d}, t;"),
    case("cvt.rn.ftz.sat.f32.s32", "s32 -> f32", (5, 1.0), (-5, 0.0), (0, 0.0)),
    case("cvt.pack.sat.s16.s32", "s32 s32 -> b32", (40000, -40000, 0x7FFF8000), (1, -1, 0x1FFFF)),
    case("cvt.pack.sat.u16.s32", "s32 s32 -> b32", (70000, -1, 0xFFFF0000)),
    case("cvt.pack.sat.s8.s32.b32", "s32 s32 b32 -> b32", (200, -200, 0xAABBCCDD, 0xCCDD7F80), (1, 2, 3, 0x00030102)),
    case("cvt.pack.sat.u4.s32.b32", "s32 s32 b32 -> b32", (99, -1, 0x123, 0x123F0), (3, 5, 0, 0x35)),
    case("cvt.pack.sat.s2.s32.b32", "s32 s32 b32 -> b32", (-9, 9, 0xF, 0xF9)),
)  # fmt: skip
