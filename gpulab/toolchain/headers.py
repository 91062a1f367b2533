"""Small stand-ins for the headers that kernels include and that NVRTC does not bring or cannot read.

Most of what kernels want from the C headers (``printf``, ``assert``, ``memcpy``, ``sqrtf``) is built into NVRTC: the
header only has to be there. Types agree with those of CCCL, so that both may be included. The C++ headers are those of
libcu++ under their usual name, and ``cub/cub.cuh`` is its device part: the whole file has host code.
"""

from __future__ import annotations

_INTEGERS = "".join(
    f"typedef {spelled} {prefix}int{kind}{bits}_t;\n"
    for bits, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for prefix, sign in (("", "signed"), ("u", "unsigned"))
    for kind in ("", "_fast", "_least")
    for spelled in (f"{sign} {base}",)
)
_STDINT = (
    _INTEGERS
    + "typedef int64_t intptr_t;\ntypedef uint64_t uintptr_t;\ntypedef int64_t intmax_t;\ntypedef uint64_t uintmax_t;\n"
    + "".join(
        f"#ifndef INT{bits}_MAX\n#define INT{bits}_MAX {name}_MAX\n#define INT{bits}_MIN {name}_MIN\n"
        f"#define UINT{bits}_MAX U{unsigned}_MAX\n#endif\n"
        for bits, name, unsigned in (
            (8, "SCHAR", "CHAR"),
            (16, "SHRT", "SHRT"),
            (32, "INT", "INT"),
            (64, "LLONG", "LLONG"),
        )
    )
    + "#include <limits.h>\n"
)
_LIMITS = "".join(
    f"#ifndef {name}\n#define {name} {value}\n#endif\n"
    for name, value in {
        "CHAR_BIT": "8", "SCHAR_MIN": "(-128)", "SCHAR_MAX": "127", "UCHAR_MAX": "255",
        "CHAR_MIN": "SCHAR_MIN", "CHAR_MAX": "SCHAR_MAX",
        "SHRT_MIN": "(-32768)", "SHRT_MAX": "32767", "USHRT_MAX": "65535",
        "INT_MIN": "(-2147483647 - 1)", "INT_MAX": "2147483647", "UINT_MAX": "4294967295U",
        "LLONG_MIN": "(-9223372036854775807LL - 1)", "LLONG_MAX": "9223372036854775807LL",
        "ULLONG_MAX": "18446744073709551615ULL",
    }.items()
)  # fmt: skip
_FLOAT = "".join(
    f"#ifndef {name}\n#define {name} {value}\n#endif\n"
    for name, value in {
        "FLT_MAX": "3.402823466e+38f", "FLT_MIN": "1.175494351e-38f", "FLT_EPSILON": "1.192092896e-07f",
        "FLT_DIG": "6", "FLT_MANT_DIG": "24", "DBL_MAX": "1.7976931348623157e+308",
        "DBL_MIN": "2.2250738585072014e-308", "DBL_EPSILON": "2.2204460492503131e-16", "DBL_DIG": "15",
        "DBL_MANT_DIG": "53",
    }.items()
)  # fmt: skip
_MATH = "".join(
    f"#ifndef {name}\n#define {name} {value}\n#endif\n"
    for name, value in {
        "INFINITY": "__int_as_float(0x7f800000)", "NAN": "__int_as_float(0x7fffffff)",
        "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000LL)", "M_PI": "3.14159265358979323846",
        "M_PI_2": "1.57079632679489661923", "M_E": "2.7182818284590452354", "M_SQRT2": "1.41421356237309504880",
        "M_LN2": "0.69314718055994530942",
    }.items()
)  # fmt: skip
_MATH_NAMES = [
    "abs",
    "fabs",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "pow",
    "floor",
    "ceil",
    "round",
    "trunc",
    "fmod",
    "fmin",
    "fmax",
    "hypot",
    "erf",
    "isnan",
    "isinf",
    "isfinite",
]
_CMATH = "#include <math.h>\nnamespace std {\n" + "".join(f"using ::{name};\n" for name in _MATH_NAMES) + "}\n"
_INTEGER_NAMES = [f"{sign}int{bits}_t" for bits in (8, 16, 32, 64) for sign in ("", "u")] + ["intptr_t", "uintptr_t"]
_CSTDINT = "#include <stdint.h>\nnamespace std {\n" + "".join(f"using ::{n};\n" for n in _INTEGER_NAMES) + "}\n"
_CSTDDEF = "#include <stddef.h>\nnamespace std { using ::size_t; using ::ptrdiff_t; }\n"
_LIBCUXX = [
    "array",
    "bit",
    "functional",
    "iterator",
    "limits",
    "numeric",
    "optional",
    "span",
    "tuple",
    "type_traits",
    "utility",
]
_CUB = {
    "block": "adjacent_difference discontinuity exchange histogram load merge_sort radix_rank radix_sort reduce run_length_decode "
    "scan shuffle store",
    "warp": "exchange load merge_sort reduce scan store",
    "thread": "load operators reduce scan search sort store",
}
_CUB_DEVICE_PART = "".join(
    f"#include <cub/{kind}/{kind}_{name}.cuh>\n" for kind, names in _CUB.items() for name in names.split()
)

#: Header name to text.
STANDARD_HEADERS = {
    name: "#pragma once\n" + text
    for name, text in {
        "stdint.h": _STDINT, "cstdint": _CSTDINT, "limits.h": _LIMITS, "climits": "#include <limits.h>\n",
        "float.h": _FLOAT, "cfloat": "#include <float.h>\n", "math.h": _MATH, "cmath": _CMATH,
        "stddef.h": "", "cstddef": _CSTDDEF, "stdio.h": "", "cstdio": "", "assert.h": "", "cassert": "",
        "stdlib.h": "", "cstdlib": "", "string.h": "", "cstring": "", "time.h": "", "ctime": "",
        **{name: f"#include <cuda/std/{name}>\nnamespace std {{ using namespace ::cuda::std; }}\n" for name in _LIBCUXX},
        "cub/cub.cuh": _CUB_DEVICE_PART,
    }.items()
}  # fmt: skip
