"""Comparisons, selections, conversions and moves with their expected values."""

from __future__ import annotations

from math import inf, nan

from instruction_suite import Bits, Case, case

MAX32, MIN32, ALL32 = 2**31 - 1, -(2**31), 2**32 - 1
DENORMAL = 2.0**-127

# lane by lane: below, equal, above, NaN left, NaN right, two NaN, zeros of both signs
_PAIRS = ((1.5, 2.5), (2.5, 2.5), (3.5, 2.5), (nan, 2.5), (2.5, nan), (nan, nan), (-0.0, 0.0))
_FLOAT_TRUTH = {
    "eq": "0100001", "ne": "1010000", "lt": "1000000", "le": "1100001", "gt": "0010000", "ge": "0110001",
    "equ": "0101111", "neu": "1011110", "ltu": "1001110", "leu": "1101111", "gtu": "0011110", "geu": "0111111",
    "num": "1110001", "nan": "0001110",
}  # fmt: skip
# -1 against 1, equal, 1 against -1
_INTEGER_TRUTH = {"eq": "010", "ne": "101", "lt": "100", "le": "110", "gt": "001", "ge": "011"}
_UNSIGNED_TRUTH = {
    "lt": "001",
    "le": "011",
    "gt": "100",
    "ge": "110",
    "lo": "001",
    "ls": "011",
    "hi": "100",
    "hs": "110",
}


def _float_compare(comparison: str, type_name: str) -> Case:
    rows = [(a, b, int(truth)) for (a, b), truth in zip(_PAIRS, _FLOAT_TRUTH[comparison], strict=True)]
    return case(f"setp.{comparison}.{type_name}", f"{type_name} {type_name} -> pred", *rows)


def _integer_compare(comparison: str, type_name: str, truths: dict[str, str]) -> Case:
    pairs = ((-1, 1), (7, 7), (1, -1))
    rows = [(a, b, int(truth)) for (a, b), truth in zip(pairs, truths[comparison], strict=True)]
    return case(f"setp.{comparison}.{type_name}", f"{type_name} {type_name} -> pred", *rows)


COMPARE: tuple[Case, ...] = (
    *(_float_compare(comparison, "f32") for comparison in _FLOAT_TRUTH),
    *(_float_compare(comparison, "f64") for comparison in ("lt", "neu", "num")),
    *(_integer_compare(comparison, "s32", _INTEGER_TRUTH) for comparison in _INTEGER_TRUTH),
    *(_integer_compare(comparison, "u32", _UNSIGNED_TRUTH) for comparison in _UNSIGNED_TRUTH),
    _integer_compare("lt", "s16", _INTEGER_TRUTH),
    _integer_compare("ge", "s64", _INTEGER_TRUTH),
    _integer_compare("gt", "u64", _UNSIGNED_TRUTH),
    _integer_compare("hi", "u16", _UNSIGNED_TRUTH),
    case("setp.eq.b32", "b32 b32 -> pred", (ALL32, ALL32, 1), (1, 2, 0)),
    case("setp.lt.ftz.f32", "f32 f32 -> pred", (0.0, DENORMAL, 0), (-DENORMAL, DENORMAL, 0), (1.0, 2.0, 1)),
    case(
        "setp # both destinations",
        "s32 s32 -> pred pred",
        (1, 2, 1, 0),
        (2, 1, 0, 1),
        text="setp.lt.s32 {d}|{e}, {a}, {b};",
    ),
    case(
        "setp.and",
        "s32 s32 pred -> pred pred",
        (1, 2, 1, 1, 0),
        (1, 2, 0, 0, 0),
        (2, 1, 1, 0, 1),
        text="setp.lt.and.s32 {d}|{e}, {a}, {b}, {c};",
    ),
    case("setp.or !c", "s32 s32 pred -> pred", (2, 1, 0, 1), (2, 1, 1, 0), text="setp.lt.or.s32 {d}, {a}, {b}, !{c};"),
    case(
        "setp.xor",
        "f32 f32 pred -> pred",
        (1.0, 2.0, 1, 0),
        (nan, 2.0, 1, 1),
        text="setp.lt.xor.f32 {d}, {a}, {b}, {c};",
    ),
    case("set.lt.u32.s32", "s32 s32 -> u32", (-1, 1, ALL32), (1, -1, 0)),
    case("set.gt.f32.f32", "f32 f32 -> f32", (2.0, 1.0, 1.0), (nan, 1.0, 0.0)),
    case("set.ne.and.s32.u32", "u32 u32 pred -> s32", (1, 2, 1, -1), (1, 2, 0, 0)),
    case("selp.b32", "b32 b32 pred -> b32", (1, 2, 1, 1), (1, 2, 0, 2)),
    # A negated predicate must not be ignored (gpgpu-sim_distribution#343).
    case(
        "selp !p",
        "b32 b32 pred -> b32",
        (1, 2, 1, 2),
        (1, 2, 0, 1),
        text=".reg .pred q; not.pred q, {c}; selp.b32 {d}, {a}, {b}, q;",
    ),
    case("selp.f64", "f64 f64 pred -> f64", (1.5, -0.0, 0, -0.0), (nan, 2.0, 0, 2.0)),
    case("selp.b16", "b16 b16 pred -> b16", (0xFFFF, 3, 1, 0xFFFF)),
    case("slct.b32.s32", "b32 b32 s32 -> b32", (1, 2, 0, 1), (1, 2, -1, 2)),
    case("slct.u64.f32", "u64 u64 f32 -> u64", (1, 2, -0.0, 1), (1, 2, nan, 2), (1, 2, -1.0, 2), (1, 2, -DENORMAL, 2)),
    case("slct.ftz.u64.f32", "u64 u64 f32 -> u64", (1, 2, -DENORMAL, 1)),
    case("guard", "s32 pred -> s32", (5, 1, 6), (5, 0, 5), text="mov.b32 {d}, {a}; @{b} add.s32 {d}, {d}, 1;"),
    case("guard !p", "s32 pred -> s32", (5, 1, 5), (5, 0, 6), text="mov.b32 {d}, {a}; @!{b} add.s32 {d}, {d}, 1;"),
)

_ROUNDING = (2.5, -2.5, 3.5, -0.75, 0.25, 1e10, -1e10, inf, nan)


def _to_s32(mode: str, *values: int) -> Case:
    return case(f"cvt.{mode}.s32.f32", "f32 -> s32", *zip(_ROUNDING, values, strict=True))


CONVERT: tuple[Case, ...] = (
    _to_s32("rni", 2, -2, 4, -1, 0, MAX32, MIN32, MAX32, 0),
    _to_s32("rzi", 2, -2, 3, 0, 0, MAX32, MIN32, MAX32, 0),
    _to_s32("rmi", 2, -3, 3, -1, 0, MAX32, MIN32, MAX32, 0),
    _to_s32("rpi", 3, -2, 4, 0, 1, MAX32, MIN32, MAX32, 0),
    case("cvt.rzi.u32.f32", "f32 -> u32", (-1.5, 0), (4294967040.0, 4294967040), (1e20, ALL32), (nan, 0)),
    case("cvt.rzi.u8.f32", "f32 -> u8", (300.0, 255), (-5.0, 0), (7.9, 7)),
    case("cvt.rni.s16.f32", "f32 -> s16", (40000.0, 32767), (-1.5, -2)),
    case("cvt.rzi.s64.f32", "f32 -> s64", (-(2.0**40), -(2**40)), (1e30, 2**63 - 1), (nan, -(2**63))),
    case("cvt.rzi.u64.f64", "f64 -> u64", (2.0**63, 2**63), (-1.0, 0), (1e30, 2**64 - 1), (nan, 2**63)),
    case("cvt.rzi.s32.f64", "f64 -> s32", (2147483648.0, MAX32), (-2147483649.0, MIN32), (1.9, 1), (nan, MIN32)),
    case("cvt.rpi.ftz.s32.f32", "f32 -> s32", (DENORMAL, 0), (0.5, 1)),
    case("cvt.rpi.s32.f32 # denormal", "f32 -> s32", (DENORMAL, 1)),
    case("cvt.rn.f32.s32", "s32 -> f32", (16777217, 16777216.0), (16777219, 16777220.0), (MIN32, -(2.0**31))),
    # gpgpu-sim_distribution#343
    case("cvt.rz.f32.s32", "s32 -> f32", (16777217, 16777216.0), (16777219, 16777218.0), (-16777219, -16777218.0)),
    case("cvt.rp.f32.s32", "s32 -> f32", (16777217, 16777218.0), (-16777217, -16777216.0)),
    case("cvt.rm.f32.u32", "u32 -> f32", (ALL32, 4294967040.0)),
    case("cvt.rn.f32.u64", "u64 -> f32", (2**64 - 1, 2.0**64), (2**63 + 2**39 + 1, 2.0**63 + 2.0**40)),
    case("cvt.rn.f32.s64", "s64 -> f32", (-(2**62) - 2**38 - 1, -(2.0**62) - 2.0**39)),
    case("cvt.rn.f64.s64", "s64 -> f64", (2**53 + 1, 2.0**53), (-(2**63), -(2.0**63))),
    case("cvt.rn.f64.u64", "u64 -> f64", (2**64 - 1, 2.0**64)),
    case("cvt.rn.f64.s32", "s32 -> f64", (MIN32, -(2.0**31))),
    case("cvt.rn.f32.u8", "u8 -> f32", (200, 200.0)),
    case("cvt.rn.f32.s8", "s8 -> f32", (200, -56.0)),
    case("cvt.rn.f32.f64", "f64 -> f32", (1.0 + 2.0**-24, 1.0), (1e300, inf), (1e-46, 0.0), (nan, nan), (-0.0, -0.0)),
    case(
        "cvt.rp.f32.f64",
        "f64 -> f32",
        (1.0 + 2.0**-50, 1.0 + 2.0**-23),
        (1e-300, 2.0**-149),
        (-1e300, -3.4028234663852886e38),
    ),
    case("cvt.rz.f32.f64", "f64 -> f32", (1e300, 3.4028234663852886e38), (-1.0 - 2.0**-24, -1.0)),
    case("cvt.rn.ftz.f32.f64", "f64 -> f32", (2.0**-127, 0.0), (-(2.0**-130), -0.0)),
    case("cvt.rn.sat.f32.f64", "f64 -> f32", (1.5, 1.0), (-1.0, 0.0), (nan, 0.0)),
    case("cvt.f64.f32", "f32 -> f64", (2.0**-149, 2.0**-149), (nan, nan), (0.1, 0.10000000149011612)),
    case("cvt.ftz.f64.f32", "f32 -> f64", (-(2.0**-149), -0.0), (1.5, 1.5)),
    case("cvt.sat.f32.f32", "f32 -> f32", (1.5, 1.0), (-0.5, 0.0), (nan, 0.0), (0.25, 0.25)),
    case("cvt.rni.f32.f32", "f32 -> f32", (2.5, 2.0), (-0.25, -0.0), (3.5, 4.0), (inf, inf)),
    case("cvt.rmi.f32.f32", "f32 -> f32", (-0.5, -1.0), (2.75, 2.0), (-0.0, -0.0)),
    case("cvt.rpi.f64.f64", "f64 -> f64", (-0.5, -0.0), (2.25, 3.0)),
    case("cvt.rzi.f64.f64", "f64 -> f64", (-1.75, -1.0), (2.0**60 + 2.0**10, 2.0**60 + 2.0**10)),
    case("cvt.rzi.ftz.f32.f32", "f32 -> f32", (-(2.0**-130), -0.0), (-1.75, -1.0)),
    case(
        "cvt.rn.f16.f32",
        "f32 -> f16",
        (1.0 + 2.0**-11, 1.0),
        (65520.0, inf),
        (65519.0, 65504.0),
        (2.0**-25, 0.0),
        (3 * 2.0**-25, 2.0**-23),
        (nan, nan),
    ),
    case("cvt.rz.f16.f32", "f32 -> f16", (65520.0, 65504.0), (-1.0 - 2.0**-11, -1.0)),
    case("cvt.f32.f16", "f16 -> f32", (2.0**-24, 2.0**-24), (-65504.0, -65504.0), (inf, inf)),
    case("cvt.rn.f16.f64", "f64 -> f16", (1.0 + 2.0**-11 + 2.0**-40, 1.0 + 2.0**-10)),
    case("cvt.f64.f16", "f16 -> f64", (-0.5, -0.5)),
    case("cvt.rn.f16.s32", "s32 -> f16", (2049, 2048.0), (2051, 2052.0), (70000, inf)),
    case("cvt.rni.s32.f16", "f16 -> s32", (2.5, 2), (-65504.0, -65504), (nan, 0)),
    case(
        "cvt.rn.bf16.f32",
        "f32 -> bf16",
        (1.0 + 2.0**-8, Bits(0x3F80)),
        (1.0 + 3 * 2.0**-8, Bits(0x3F82)),
        (nan, nan),
        (-inf, Bits(0xFF80)),
    ),
    case("cvt.rz.bf16.f32", "f32 -> bf16", (1.0 + 2.0**-7 * 0.99, Bits(0x3F80))),
    case("cvt.f32.bf16", "bf16 -> f32", (Bits(0x3F81), 1.0 + 2.0**-7)),
    case("cvt.rn.f16x2.f32", "f32 f32 -> f16x2", (2.0, 1.0, 0x40003C00), (nan, -1.5, 0x7FFFBE00)),
    case("cvt.rn.relu.f16x2.f32", "f32 f32 -> f16x2", (-2.0, 1.0, 0x00003C00)),
    case("cvt.rn.bf16x2.f32", "f32 f32 -> bf16x2", (2.0, 1.0, 0x40003F80)),
    case(
        "cvt.rna.tf32.f32",
        "f32 -> b32",
        (Bits(0x3F801000), 0x3F802000),
        (Bits(0xBF800FFF), 0xBF800000),
        (inf, 0x7F800000),
    ),
    case("cvt.s32.s8", "s8 -> s32", (0x80, -128), (127, 127)),
    case("cvt.u32.s8 # sign extends", "s8 -> u32", (0xFF, ALL32), text="cvt.u32.s8 {d}, {a};"),
    case("cvt.u64.u32", "u32 -> u64", (ALL32, ALL32)),
    case("cvt.s64.s32", "s32 -> s64", (MIN32, MIN32)),
    case("cvt.u32.u64", "u64 -> u32", (2**40 + 5, 5)),
    case("cvt.u16.u32", "u32 -> u16", (0x12345, 0x2345)),
    case("cvt.s8.s32 # in a wide register", "s32 -> s32", (200, -56), (-129, 127), text="cvt.s8.s32 {d}, {a};"),
    case("cvt.u8.u32 # in a wide register", "u32 -> u32", (0x1FF, 0xFF), text="cvt.u8.u32 {d}, {a};"),
    case("cvt.sat.u8.s32", "s32 -> u8", (300, 255), (-5, 0), (77, 77)),
    case("cvt.sat.s8.s32", "s32 -> s8", (300, 127), (-300, -128)),
    case("cvt.sat.s32.u32", "u32 -> s32", (ALL32, MAX32)),
    case("cvt.sat.u32.s64", "s64 -> u32", (-1, 0), (2**40, ALL32)),
)

MOVE: tuple[Case, ...] = (
    case(
        "mov.b64 # unpack",
        "b64 -> b32 b32",
        (0x1122334455667788, 0x55667788, 0x11223344),
        text="mov.b64 {{d}, {e}}, {a};",
    ),
    case(
        "mov.b64 # pack",
        "b32 b32 -> b64",
        (0xAABBCCDD, 0x11223344, 0x11223344AABBCCDD),
        text="mov.b64 {d}, {{a}, {b}};",
    ),
    case("mov.b64 # the upper half", "b64 -> b32", (0x1122334455667788, 0x11223344), text="mov.b64 {_, {d}}, {a};"),
    case("mov.b32 # pack", "b16 b16 -> b32", (0xFFFF, 1, 0x1FFFF), text="mov.b32 {d}, {{a}, {b}};"),
    case("mov.b32 # unpack", "b32 -> b16 b16", (0xABCD1234, 0x1234, 0xABCD), text="mov.b32 {{d}, {e}}, {a};"),
    case(
        "mov.b64 # of four",
        "b16 b16 -> b64",
        (1, 0xFFFF, 0xFFFF0001FFFF0001),
        text="mov.b64 {d}, {{a}, {b}, {a}, {b}};",
    ),
    case("mov.u32 # negative", "b32 -> b32", (0, ALL32 - 4), text="mov.u32 {d}, -5;"),
    case("mov.s64 # constant", "b32 -> b64", (0, 2**64 - 1), text="mov.s64 {d}, -1;"),
    case("mov.u32 # hexadecimal", "b32 -> b32", (0, 0xDEADBEEF), text="mov.u32 {d}, 0xDEADBEEF;"),
    case("mov.pred", "pred -> pred", (1, 1), (0, 0)),
    case("mov.u32 WARP_SZ", "b32 -> b32", (0, 32), text="mov.u32 {d}, WARP_SZ;"),
    case("mov.b32 # the pattern of a float", "b32 -> b32", (0, 0x3FC00000), text="mov.b32 {d}, 0f3FC00000;"),
    case(
        "mov.f32 # NaN keeps its payload",
        "f32 -> f32",
        (Bits(0x7FC12345), Bits(0x7FC12345)),
        (Bits(0x7F812345), Bits(0x7F812345)),
    ),
)
