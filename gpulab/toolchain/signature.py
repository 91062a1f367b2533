"""The parameters of a CUDA C++ kernel: exact types from the compiler itself, names from the source text.

PTX has lost the types (a pointer is 64 bits, whatever it points to). So NVRTC is asked: a few lines of template code
appended to the user's source put a table of the kernel's parameter types into the module; it is read and taken out of
the PTX again.
"""

from __future__ import annotations

import re

import numpy as np

from gpulab.errors import CompileError
from gpulab.toolchain.records import ParameterType

TABLE = "gpulab_signature_table"
_POINTER, _CONST = 0x100, 0x200

# C++ type, NumPy dtype. The position + 1 is the code in the table.
_ARITHMETIC: tuple[tuple[str, str], ...] = (
    ("bool", "?"), ("char", "i1"), ("signed char", "i1"), ("unsigned char", "u1"), ("short", "i2"),
    ("unsigned short", "u2"), ("int", "i4"), ("unsigned int", "u4"), ("long", "i8"), ("unsigned long", "u8"),
    ("long long", "i8"), ("unsigned long long", "u8"), ("float", "f4"), ("double", "f8"),
)  # fmt: skip
_LONG_BYTES_CODES = {"long": "i4", "unsigned long": "u4"}  # where long has 4 bytes (Windows)


def probe(name: str) -> str:
    """C++ text to append to a source so that the module tells the parameter types of kernel `name`."""
    codes = "\n".join(
        f"template <> struct code<{spelled}> {{ enum : unsigned {{ value = {number}u }}; }};"
        for number, (spelled, _) in enumerate(_ARITHMETIC, 1)
    )
    return f"""
#line 1 "gpulab_signature"
namespace gpulab_signature {{
template <class T> struct code {{ enum : unsigned {{ value = 0u }}; }};
{codes}
template <class T> struct bare {{ typedef T type; enum : unsigned {{ flag = 0u }}; }};
template <class T> struct bare<const T> {{ typedef T type; enum : unsigned {{ flag = {_CONST}u }}; }};
template <class T> struct bare<volatile T> {{ typedef T type; enum : unsigned {{ flag = 0u }}; }};
template <class T> struct bare<const volatile T> {{ typedef T type; enum : unsigned {{ flag = {_CONST}u }}; }};
template <class T> struct one {{ enum : unsigned {{ value = code<T>::value | (unsigned(sizeof(T)) << 16) }}; }};
template <class T> struct one<T*> {{ enum : unsigned {{
  value = code<typename bare<T>::type>::value | {_POINTER}u | bare<T>::flag | (unsigned(sizeof(T*)) << 16) }}; }};
template <class F> struct all;
template <class... A> struct all<void(A...)> {{ struct table {{ unsigned of[sizeof...(A) + 1]; }};
  __host__ __device__ static constexpr table make() {{ return {{{{unsigned(sizeof...(A)), one<A>::value...}}}}; }} }};
}}
extern "C" {{ __device__ gpulab_signature::all<decltype({name})>::table {TABLE} =
  gpulab_signature::all<decltype({name})>::make(); }}
"""


def take_table(ptx: str) -> tuple[str, list[int] | None]:
    """The PTX without the table, and the table's words; None if there is no table."""
    match = re.search(rf"^.*\.global[^\n]*\b{TABLE}\[\d+\](?: = \{{([^}}]*)\}})?;[^\n]*\n(?:[ \t]*\n)?", ptx, re.M)
    if match is None:
        return ptx, None
    declared = int(re.search(rf"{TABLE}\[(\d+)\]", match[0])[1])  # type: ignore[index]
    values = [int(part, 0) for part in (match[1] or "").split(",") if part.strip()]
    data = bytes(values).ljust(declared, b"\0")  # trailing zero bytes are left out of the PTX
    return ptx[: match.start()] + ptx[match.end() :], np.frombuffer(data, "<u4").tolist()


def entry_parameters(ptx: str, entry: str) -> tuple[ParameterType, ...]:
    """The parameters of an entry as far as PTX tells: sizes, alignments, and floats from integers."""
    header = re.search(rf"\.entry\s+{re.escape(entry)}\s*\((.*?)\)", ptx, re.S)
    declarations = re.findall(r"\.param\s+([^,]*)", header[1]) if header else []
    return tuple(_from_ptx(declaration.split()) for declaration in declarations)


def _from_ptx(words: list[str]) -> ParameterType:
    """One declaration, e.g. ``.align 4 .b8 k_param_5[12]`` or ``.u64 .ptr .global .align 4 k_param_0``."""
    basic = next((word for word in words if re.fullmatch(r"\.[busf](8|16|32|64)", word)), None)
    if basic is None:
        raise CompileError(
            f"Expected a parameter like '.param .u64 name' in the PTX, but '.param {' '.join(words)}' came."
        )
    width = int(basic[2:]) // 8
    extent = re.search(r"\[(\d+)\]$", words[-1])
    if extent:
        align = int(words[words.index(".align") + 1]) if ".align" in words else width
        return ParameterType("struct", size=int(extent[1]) * width, align=align)
    kind = {"f": "f", "s": "i"}.get(basic[1], "u")
    if width == 8 and kind != "f":
        return ParameterType("pointer" if ".ptr" in words else "scalar", dtype=np.dtype("u8"), size=8, align=8)
    return ParameterType("scalar", dtype=np.dtype(f"{kind}{width}"), size=width, align=width)


def merge(
    from_ptx: tuple[ParameterType, ...], table: list[int] | None, declared: list[tuple[str, str]]
) -> tuple[ParameterType, ...]:
    """Parameters with all that is known: layout from PTX, types from the table, names and spelling from the source."""
    words = table[1:] if table and table[0] == len(from_ptx) else [None] * len(from_ptx)
    texts = declared if len(declared) == len(from_ptx) else [("", "")] * len(from_ptx)
    return tuple(_merged(*parts) for parts in zip(from_ptx, words, texts, strict=True))


def _merged(known: ParameterType, word: int | None, text: tuple[str, str]) -> ParameterType:
    spelling, name = text
    if word is None:
        kind = "pointer" if known.kind == "pointer" or spelling.endswith("*") else known.kind
        dtype = None if kind == "pointer" else known.dtype
        return ParameterType(kind, name, dtype, size=known.size, align=known.align, spelling=spelling)
    spelled, dtype = _arithmetic(word & 0xFF, known.size if not word & _POINTER else 0)
    if word & _POINTER:
        constant = bool(word & _CONST)
        if spelled and "*" not in spelling:
            spelling = ("const " if constant else "") + f"{spelled}*"
        return ParameterType("pointer", name, dtype, readonly=constant, size=8, align=8, spelling=spelling)
    if dtype is not None:
        return ParameterType("scalar", name, dtype, size=known.size, align=known.align, spelling=spelled)
    kind = "struct" if known.kind == "struct" else "scalar"
    return ParameterType(kind, name, known.dtype, size=known.size, align=known.align, spelling=spelling)


def _arithmetic(code: int, size: int) -> tuple[str, np.dtype | None]:
    if code == 0:
        return "", None
    spelled, dtype = _ARITHMETIC[code - 1]
    if size == 4 and spelled in _LONG_BYTES_CODES:
        dtype = _LONG_BYTES_CODES[spelled]
    return spelled, np.dtype(dtype)


def declared_parameters(source: str, name: str) -> list[tuple[str, str]]:
    """Spelling and name of a kernel's parameters as its source has them; [] where the source is too clever.

    In a template the spelling may hold the template's own parameters, so that only the compiler's types are of use: it
    is ``""`` where a type may depend on them.
    """
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    base = re.escape(name.split("<")[0].split("::")[-1].strip())
    match = re.search(rf"__global__[^;{{}}]*?\b{base}\s*\(", plain)
    if match is None:
        return []
    parts = [_split(part) for part in _top_level_parts(plain[match.end() :])]
    if "<" not in name:
        return parts
    heads = re.findall(r"template\s*<([^{};]*?)>\s*(?=[^;{}]*$)", plain[: match.start()])
    own = set(re.findall(r"\w+", heads[-1])) - {"class", "typename", "int", "unsigned", "bool"} if heads else set()
    return [("" if own & set(re.findall(r"\w+", spelling)) else spelling, called) for spelling, called in parts]


def _top_level_parts(text: str) -> list[str]:
    """The comma-separated parts up to the parenthesis that closes the list."""
    depth, start, parts = 0, 0, []
    for index, char in enumerate(text):
        if char == ")" and depth == 0:
            parts.append(text[start:index])
            break
        depth += (char in "([<{") - (char in ")]>}")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in parts if part.strip() and part.strip() != "void"]


def _split(declaration: str) -> tuple[str, str]:
    """Type and name of ``const float* __restrict__ x``."""
    text = re.sub(r"\b__restrict__\b|\b__restrict\b|\b__grid_constant__\b|=.*", " ", declaration)
    match = re.search(r"([A-Za-z_]\w*)\s*(\[[^\]]*\])?\s*$", text)
    if match is None:
        return " ".join(text.split()), ""
    spelled = text[: match.start()].strip() + ("*" if match[2] is not None else "")
    return re.sub(r"\s*\*\s*", "*", " ".join(spelled.split())), match[1]
