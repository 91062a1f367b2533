"""Floating-point instructions with their expected values, worked by hand from IEEE 754 and the PTX ISA."""

from __future__ import annotations

from math import inf, nan

from instruction_suite import Bits, Case, case

TINY = 2.0**-149  # smallest f32
DENORMAL = 2.0**-127
NORMAL = 2.0**-126  # smallest normal f32
LARGEST = (2.0 - 2.0**-23) * 2.0**127
ULP = 2.0**-23  # of 1.0 in f32
TINY64, NORMAL64, ULP64 = 5e-324, 2.0**-1022, 2.0**-52
LARGEST64 = 1.7976931348623157e308

F32: tuple[Case, ...] = (
    case(
        "add.f32",
        "f32 f32 -> f32",
        (1.0, ULP / 2, 1.0),
        (1.0 + ULP, ULP / 2, 1.0 + 2 * ULP),
        (inf, -inf, nan),
        (-0.0, -0.0, -0.0),
        (0.0, -0.0, 0.0),
        (TINY, TINY, 2 * TINY),
        (LARGEST, LARGEST, inf),
        (nan, 1.0, nan),
    ),
    # Each rounding mode on its own side of the same sums (gpgpu-sim_distribution#343: .rm and .rp abort).
    case(
        "add.rz.f32", "f32 f32 -> f32", (1.0, ULP * 0.75, 1.0), (-1.0, -ULP * 0.75, -1.0), (LARGEST, LARGEST, LARGEST)
    ),
    case(
        "add.rm.f32",
        "f32 f32 -> f32",
        (1.0, ULP / 4, 1.0),
        (-1.0, -ULP / 4, -1.0 - ULP),
        (1.0, -1.0, -0.0),
        (-LARGEST, -1.0, -inf),
    ),
    case(
        "add.rp.f32",
        "f32 f32 -> f32",
        (1.0, ULP / 4, 1.0 + ULP),
        (-1.0, -ULP / 4, -1.0),
        (LARGEST, 1.0, inf),
        (1.0, -1.0, 0.0),
    ),
    # ZLUDA's tests: flushing happens to sources and to results.
    case(
        "add.ftz.f32",
        "f32 f32 -> f32",
        (DENORMAL, NORMAL, NORMAL),
        (NORMAL, -1.5 * NORMAL, -0.0),
        (-DENORMAL, -0.0, -0.0),
        (DENORMAL, DENORMAL, 0.0),
    ),
    case(
        "add.sat.f32",
        "f32 f32 -> f32",
        (0.75, 0.75, 1.0),
        (-1.0, 0.5, 0.0),
        (0.25, 0.5, 0.75),
        (nan, 0.0, 0.0),
        (-0.0, -0.0, 0.0),
    ),
    case("add.rn.ftz.sat.f32", "f32 f32 -> f32", (DENORMAL, 0.0, 0.0), (3.0, inf, 1.0)),
    case("sub.f32", "f32 f32 -> f32", (1.0, ULP / 4, 1.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (inf, inf, nan)),
    case("sub.rm.f32", "f32 f32 -> f32", (1.0, ULP / 4, 1.0 - ULP / 2), (1.0, 1.0, -0.0)),
    case("sub.ftz.f32", "f32 f32 -> f32", (NORMAL, DENORMAL, NORMAL), (1.5 * NORMAL, NORMAL, 0.0)),
    case(
        "mul.f32",
        "f32 f32 -> f32",
        (NORMAL, 0.5, DENORMAL),
        (inf, 0.0, nan),
        (-3.0, 0.0, -0.0),
        (TINY, 0.5, 0.0),
        (3 * TINY, 0.5, 2 * TINY),
    ),
    case("mul.ftz.f32", "f32 f32 -> f32", (NORMAL, 0.5, 0.0), (-NORMAL, 0.5, -0.0), (DENORMAL, 2.0**20, 0.0)),
    case("mul.rz.f32", "f32 f32 -> f32", (1.0 + ULP, 1.0 + ULP, 1.0 + 2 * ULP), (TINY, -0.75, -0.0)),
    case(
        "mul.rp.f32", "f32 f32 -> f32", (1.0 + ULP, 1.0 + ULP, 1.0 + 3 * ULP), (TINY, 0.25, TINY), (TINY, -0.25, -0.0)
    ),
    case("mul.rm.f32", "f32 f32 -> f32", (-1.0 - ULP, 1.0 + ULP, -1.0 - 3 * ULP), (TINY, -0.25, -TINY)),
    case("mul.sat.f32", "f32 f32 -> f32", (2.0, 2.0, 1.0), (2.0, -2.0, 0.0), (inf, 0.0, 0.0)),
    # The product alone would round to 1 + 2 ulp: only one rounding keeps the square of an ulp.
    case(
        "fma.rn.f32",
        "f32 f32 f32 -> f32",
        (1.0 + ULP, 1.0 + ULP, -1.0 - 2 * ULP, ULP * ULP),
        (inf, 0.0, 1.0, nan),
        (2.0, 3.0, -6.0, 0.0),
        (0.0, -1.0, -0.0, -0.0),
        (LARGEST, 2.0, -inf, -inf),
        (LARGEST, 2.0, -LARGEST, LARGEST),
        # By way of f64 these are ties that were none: plus a trace must round up, minus a trace down.
        (1.0 + 2.0**-12, 1.0 + 2.0**-12, 2.0**-100, 1.0 + 2.0**-11 + ULP),
        (1.0 + 2.0**-12, 1.0 + 2.0**-12, -(2.0**-100), 1.0 + 2.0**-11),
        (1.0, 1.0 + ULP, ULP / 2 + 2.0**-80, 1.0 + 2 * ULP),
        (1.0 + ULP, 1.0, ULP / 2 - 2.0**-48, 1.0 + ULP),
    ),
    # 4097 squared is half way between two f32; the smallest denormal decides.
    case(
        "fma.rn.f32 # half way and a trace",
        "f32 f32 f32 -> f32",
        (4097.0, 4097.0, TINY, 16785410.0),
        (4097.0, 4097.0, -TINY, 16785408.0),
        (4097.0, 4097.0, 0.0, 16785408.0),
        (-4097.0, 4097.0, -TINY, -16785410.0),
    ),
    case("fma.rz.f32", "f32 f32 f32 -> f32", (1.0, 1.0, ULP * 0.75, 1.0), (-1.0, 1.0, -ULP * 0.75, -1.0)),
    case(
        "fma.rm.f32",
        "f32 f32 f32 -> f32",
        (1.0, 1.0, -TINY, 1.0 - ULP / 2),
        (1.0, 1.0, -1.0, -0.0),
        (TINY, TINY, -0.0, 0.0),
    ),
    case(
        "fma.rp.f32", "f32 f32 f32 -> f32", (1.0, 1.0, TINY, 1.0 + ULP), (1.0, -1.0, 1.0, 0.0), (TINY, TINY, 0.0, TINY)
    ),
    case(
        "fma.rn.ftz.f32",
        "f32 f32 f32 -> f32",
        (DENORMAL, 4.0, 0.0, 0.0),
        (NORMAL, 0.5, 0.0, 0.0),
        (1.0, 1.0, DENORMAL, 1.0),
    ),
    case("fma.rn.sat.f32", "f32 f32 f32 -> f32", (2.0, 2.0, 2.0, 1.0), (1.0, -1.0, 0.0, 0.0), (nan, 1.0, 1.0, 0.0)),
    case("mad.rn.f32", "f32 f32 f32 -> f32", (1.0 + ULP, 1.0 + ULP, -1.0 - 2 * ULP, ULP * ULP)),
    case(
        "div.rn.f32",
        "f32 f32 -> f32",
        (1.0, 3.0, Bits(0x3EAAAAAB)),
        (1.0, 0.0, inf),
        (-1.0, 0.0, -inf),
        (0.0, 0.0, nan),
        (TINY, 2.0, 0.0),
        (inf, inf, nan),
    ),
    case("div.rz.f32", "f32 f32 -> f32", (1.0, 3.0, Bits(0x3EAAAAAA)), (-2.0, 3.0, Bits(0xBF2AAAAA))),
    case("div.rm.f32", "f32 f32 -> f32", (-1.0, 3.0, Bits(0xBEAAAAAB)), (1.0, 3.0, Bits(0x3EAAAAAA)), (1.0, inf, 0.0)),
    case(
        "div.rp.f32", "f32 f32 -> f32", (1.0, 3.0, Bits(0x3EAAAAAB)), (-1.0, 3.0, Bits(0xBEAAAAAA)), (TINY, 4.0, TINY)
    ),
    case("div.rn.ftz.f32", "f32 f32 -> f32", (DENORMAL, 1.0, 0.0), (1.0, DENORMAL, inf), (NORMAL, -2.0, -0.0)),
    case("rcp.rn.f32", "f32 -> f32", (3.0, Bits(0x3EAAAAAB)), (-0.0, -inf), (inf, 0.0), (2.0**127, DENORMAL)),
    case("rcp.rz.f32", "f32 -> f32", (3.0, Bits(0x3EAAAAAA))),
    case("rcp.rn.ftz.f32", "f32 -> f32", (2.0**127, 0.0), (-DENORMAL, -inf)),
    case(
        "sqrt.rn.f32",
        "f32 -> f32",
        (2.0, Bits(0x3FB504F3)),
        (-1.0, nan),
        (-0.0, -0.0),
        (inf, inf),
        (2.0**-148, 2.0**-74),
    ),
    case("sqrt.rm.f32", "f32 -> f32", (2.0, Bits(0x3FB504F3)), (3.0, Bits(0x3FDDB3D7))),
    case("sqrt.rp.f32", "f32 -> f32", (2.0, Bits(0x3FB504F4)), (4.0, 2.0)),
    case("sqrt.rz.ftz.f32", "f32 -> f32", (3.0, Bits(0x3FDDB3D7)), (-DENORMAL, -0.0)),
    case(
        "min.f32",
        "f32 f32 -> f32",
        (0.0, -0.0, -0.0),
        (-0.0, 0.0, -0.0),
        (nan, 1.0, 1.0),
        (1.0, nan, 1.0),
        (nan, nan, Bits(0x7FFFFFFF)),
        (-inf, 3.0, -inf),
    ),
    case("max.f32", "f32 f32 -> f32", (0.0, -0.0, 0.0), (-0.0, 0.0, 0.0), (nan, -1.0, -1.0), (2.5, 2.25, 2.5)),
    case("min.ftz.f32", "f32 f32 -> f32", (DENORMAL, 1.0, 0.0), (-DENORMAL, 1.0, -0.0)),
    case("max.NaN.f32", "f32 f32 -> f32", (nan, 1.0, Bits(0x7FFFFFFF)), (2.0, 1.0, 2.0)),
    case("abs.f32", "f32 -> f32", (-1.5, 1.5), (-0.0, 0.0), (-inf, inf), (-TINY, TINY)),
    case("abs.ftz.f32", "f32 -> f32", (-DENORMAL, 0.0)),
    case("neg.f32", "f32 -> f32", (0.0, -0.0), (1.5, -1.5), (TINY, -TINY)),
    case("neg.ftz.f32", "f32 -> f32", (DENORMAL, -0.0)),
    case("copysign.f32", "f32 f32 -> f32", (-1.0, 3.0, -3.0), (1.0, -3.0, 3.0), (-0.0, inf, -inf)),
    case("testp.finite.f32", "f32 -> pred", (1.0, 1), (inf, 0), (nan, 0)),
    case("testp.infinite.f32", "f32 -> pred", (-inf, 1), (LARGEST, 0)),
    case("testp.number.f32", "f32 -> pred", (inf, 1), (nan, 0)),
    case("testp.notanumber.f32", "f32 -> pred", (nan, 1), (0.0, 0)),
    case("testp.normal.f32", "f32 -> pred", (NORMAL, 1), (DENORMAL, 0), (0.0, 0), (inf, 0)),
    case("testp.subnormal.f32", "f32 -> pred", (DENORMAL, 1), (0.0, 0), (NORMAL, 0)),
    case("constants", "f32 -> f32 f32", (1.0, 1.5, 2.0), text="mov.f32 {d}, 0f3FC00000; mov.f32 {e}, 2.0;"),
)

F64: tuple[Case, ...] = (
    case(
        "add.f64",
        "f64 f64 -> f64",
        (1.0, ULP64 / 2, 1.0),
        (TINY64, -TINY64, 0.0),
        (inf, -inf, nan),
        (0.1, 0.2, 0.30000000000000004),
    ),
    case("add.rp.f64", "f64 f64 -> f64", (1.0, TINY64, 1.0 + ULP64), (-1.0, -TINY64, -1.0)),
    case("add.rm.f64", "f64 f64 -> f64", (1.0, -TINY64, 1.0 - ULP64 / 2), (3.0, -3.0, -0.0)),
    case("add.rz.f64", "f64 f64 -> f64", (LARGEST64, LARGEST64, LARGEST64), (-1.0, TINY64, -1.0 + ULP64 / 2)),
    case("sub.f64", "f64 f64 -> f64", (NORMAL64, NORMAL64 / 2, NORMAL64 / 2)),
    case("mul.f64", "f64 f64 -> f64", (1e200, 1e200, inf), (NORMAL64, 0.5, NORMAL64 / 2), (-0.0, 5.0, -0.0)),
    case(
        "mul.rm.f64",
        "f64 f64 -> f64",
        (1.0 + ULP64, 1.0 + ULP64, 1.0 + 2 * ULP64),
        (-1.0 - ULP64, 1.0 + ULP64, -1.0 - 3 * ULP64),
    ),
    case(
        "fma.rn.f64",
        "f64 f64 f64 -> f64",
        (1.0 + ULP64, 1.0 + ULP64, -1.0 - 2 * ULP64, ULP64 * ULP64),
        # A fused operation of f64 can't be had by two roundings: 0.1 * 10 - 1 keeps the error of 0.1.
        (0.1, 10.0, -1.0, 2.0**-54),
        (1e300, 1e300, -inf, -inf),
        (LARGEST64, 2.0, -LARGEST64, LARGEST64),
        (inf, 0.0, 1.0, nan),
        (0.0, 5.0, -0.0, 0.0),
    ),
    case("fma.rm.f64", "f64 f64 f64 -> f64", (1.0, 1.0, -TINY64, 1.0 - ULP64 / 2), (1.0, 1.0, -1.0, -0.0)),
    case("fma.rp.f64", "f64 f64 f64 -> f64", (1.0, 1.0, TINY64, 1.0 + ULP64)),
    case("fma.rz.f64", "f64 f64 f64 -> f64", (-1.0, 1.0, -TINY64, -1.0)),
    case("div.rn.f64", "f64 f64 -> f64", (1.0, 3.0, 1 / 3), (1.0, -0.0, -inf), (0.0, 0.0, nan)),
    case("div.rp.f64", "f64 f64 -> f64", (1.0, 3.0, 1 / 3 + 2.0**-54), (-1.0, 3.0, -1 / 3)),
    case("div.rz.f64", "f64 f64 -> f64", (2.0, 3.0, 0.6666666666666666)),
    case("rcp.rn.f64", "f64 -> f64", (3.0, 1 / 3), (0.0, inf)),
    case("sqrt.rn.f64", "f64 -> f64", (2.0, 1.4142135623730951), (-1.0, nan), (-0.0, -0.0)),
    case("sqrt.rm.f64", "f64 -> f64", (2.0, 1.414213562373095), (9.0, 3.0)),
    case("min.f64", "f64 f64 -> f64", (-0.0, 0.0, -0.0), (nan, 2.0, 2.0)),
    case("max.f64", "f64 f64 -> f64", (-0.0, 0.0, 0.0), (2.0, nan, 2.0)),
    case("abs.f64", "f64 -> f64", (-TINY64, TINY64), (-0.0, 0.0)),
    case("neg.f64", "f64 -> f64", (0.0, -0.0)),
    case("copysign.f64", "f64 f64 -> f64", (-1.0, 3.0, -3.0)),
    case("testp.subnormal.f64", "f64 -> pred", (TINY64, 1), (NORMAL64, 0)),
    case("constants", "f64 -> f64", (1.0, 0.1), text="mov.f64 {d}, 0d3FB999999999999A;"),
)

HALF: tuple[Case, ...] = (
    case(
        "add.f16",
        "f16 f16 -> f16",
        (1.0, 2.0**-11, 1.0),
        (1.0 + 2.0**-10, 2.0**-11, 1.0 + 2.0**-9),
        (65504.0, 16.0, inf),
        (inf, -inf, nan),
    ),
    case("add.ftz.f16", "f16 f16 -> f16", (2.0**-15, 0.0, 0.0), (2.0**-14, 2.0**-15, 2.0**-14)),
    # The saturation must not be forgotten (tinygrad/gpuocelot#12).
    case("add.sat.f16", "f16 f16 -> f16", (0.75, 0.75, 1.0), (-1.0, 0.5, 0.0), (nan, 1.0, 0.0)),
    case("sub.f16", "f16 f16 -> f16", (1.0, 2.0**-12, 1.0), (0.5, 0.5, 0.0)),
    case("mul.f16", "f16 f16 -> f16", (2.0**-14, 0.5, 2.0**-15), (256.0, 256.0, inf), (3.0, -0.0, -0.0)),
    case(
        "fma.rn.f16",
        "f16 f16 f16 -> f16",
        (1.0 + 2.0**-10, 1.0 + 2.0**-10, -1.0 - 2.0**-9, 2.0**-20),
        # 2049 is half way between two halves; a trace beyond f32's reach decides.
        (2048.0, 1.0, 1.0, 2048.0),
        (683.0, 3.0, Bits(0x0001), 2050.0),
        (683.0, 3.0, Bits(0x8001), 2048.0),
    ),
    case("fma.rn.relu.f16", "f16 f16 f16 -> f16", (1.0, -2.0, 1.0, 0.0), (1.0, 2.0, 1.0, 3.0), (nan, 1.0, 1.0, nan)),
    case("fma.rn.f16x2", "f16x2 f16x2 f16x2 -> f16x2", (0x3C004000, 0x40004000, 0x3C003C00, 0x42004500)),
    case("add.f16x2", "f16x2 f16x2 -> f16x2", (0x3C00FBFF, 0x4000CC00, 0x4200FC00)),
    case("mul.f16x2", "f16x2 f16x2 -> f16x2", (0x40003C00, 0x4000BC00, 0x4400BC00)),
    case("neg.f16", "f16 -> f16", (0.0, -0.0), (1.5, -1.5)),
    case("abs.f16x2", "f16x2 -> f16x2", (0xBC008000, 0x3C000000)),
    case("min.f16", "f16 f16 -> f16", (0.0, -0.0, -0.0), (nan, 1.0, 1.0)),
    case("max.f16", "f16 f16 -> f16", (0.0, -0.0, 0.0), (1.0, nan, 1.0)),
    case("max.NaN.f16", "f16 f16 -> f16", (nan, 1.0, Bits(0x7FFF))),
    case("min.f16x2", "f16x2 f16x2 -> f16x2", (0x3C004000, 0x40003C00, 0x3C003C00)),
    case(
        "add.bf16",
        "bf16 bf16 -> bf16",
        (Bits(0x3F80), Bits(0x3B80), Bits(0x3F80)),
        (Bits(0x3F81), Bits(0x3B80), Bits(0x3F82)),
        (Bits(0x7F80), Bits(0xFF80), nan),
    ),
    case(
        "fma.rn.bf16",
        "bf16 bf16 bf16 -> bf16",
        (Bits(0x3F81), Bits(0x3F81), Bits(0xBF82), Bits(0x3880)),
        (Bits(0x4000), Bits(0x4040), Bits(0x3F80), Bits(0x40E0)),
    ),
    case("fma.rn.bf16x2", "bf16x2 bf16x2 bf16x2 -> bf16x2", (0x40003F80, 0x40403F80, 0x3F803F80, 0x40E04000)),
    case(
        "max.bf16",
        "bf16 bf16 -> bf16",
        (Bits(0x8000), Bits(0x0000), Bits(0x0000)),
        (Bits(0x3F80), Bits(0x4000), Bits(0x4000)),
    ),
    case("neg.bf16", "bf16 -> bf16", (Bits(0x3F80), Bits(0xBF80))),
    case("setp.lt.f16", "f16 f16 -> pred", (1.0, 2.0, 1), (nan, 1.0, 0), (-0.0, 0.0, 0)),
    case("setp.gtu.bf16", "bf16 bf16 -> pred", (Bits(0x4000), Bits(0x3F80), 1), (Bits(0x7FC0), Bits(0), 1)),
    case(
        "setp.lt.f16x2",
        "f16x2 f16x2 -> pred pred",
        (0x3C004000, 0x40003C00, 0, 1),
        text="setp.lt.f16x2 {d}|{e}, {a}, {b};",
    ),
    case("set.eq.f16.f16", "f16 f16 -> f16", (2.0, 2.0, 1.0), (nan, nan, 0.0)),
    case("set.lt.f16x2.f16x2", "f16x2 f16x2 -> f16x2", (0x3C004000, 0x40003C00, 0x3C000000)),
    case("set.ne.u16.f16", "f16 f16 -> u16", (1.0, 2.0, 0xFFFF), (nan, 1.0, 0)),
)
