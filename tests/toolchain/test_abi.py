"""The parameter buffer, worked out by hand, and every argument that does not fit."""

from __future__ import annotations

import re
import struct
import types
from typing import Any

import numpy as np
import pytest

from gpulab.errors import ArgumentError
from gpulab.toolchain import abi, nvrtc, ptx_source
from gpulab.toolchain.argument_types import ArrayFacts, GpuArray, array_facts, numba_type
from gpulab.toolchain.records import ParameterType

ADDRESS = 0x1000


def bind(array: Any, facts: ArrayFacts, name: str) -> int:
    """Every array is at the same address here."""
    return ADDRESS


def packed(parameters: Any, *args: Any) -> bytes:
    return abi.pack("k", tuple(parameters), args, bind)


def numba_packed(*args: Any) -> bytes:
    return packed([numba_type(value, f"p{number}") for number, value in enumerate(args)], *args)


# ---- Numba


def test_an_array_is_five_words_then_shape_and_strides() -> None:
    x = np.zeros((3, 5), np.float32)
    assert numba_packed(x) == struct.pack("<QQqqQqqqq", 0, 0, 15, 4, ADDRESS, 3, 5, 20, 4)


def test_strides_may_be_negative_or_zero() -> None:
    x = np.zeros((4, 6), np.int16)[::-1, ::2]
    assert numba_packed(x) == struct.pack("<QQqqQqqqq", 0, 0, 12, 2, ADDRESS, 4, 3, -12, 4)
    row = np.broadcast_to(np.zeros(5, np.float64), (2, 5))
    assert numba_packed(row) == struct.pack("<QQqqQqqqq", 0, 0, 10, 8, ADDRESS, 2, 5, 0, 8)


def test_empty_and_zero_dimensional_arrays() -> None:
    empty = np.zeros((0, 3), np.uint8)
    assert numba_packed(empty) == struct.pack("<QQqqQqqqq", 0, 0, 0, 1, ADDRESS, 0, 3, *empty.strides)
    assert numba_packed(np.array(7.0)) == struct.pack("<QQqqQ", 0, 0, 1, 8, ADDRESS)


def test_scalars_have_their_own_size_and_alignment() -> None:
    # bool at 0, float32 at 4, int64 at 8, int8 at 16, float16 at 18, float64 at 24
    buffer = numba_packed(True, np.float32(1.5), -2, np.int8(-3), np.float16(0.5), 2.25)
    assert buffer == struct.pack("<?3xfqb1xHxxxxd", True, 1.5, -2, -3, 0x3800, 2.25)


def test_python_numbers_have_numbas_types() -> None:
    kinds = [str(numba_type(value)) for value in (1, 2**63, -(2**63), True, 1.0, 1j, np.uint8(1), (1, 2.0))]
    assert kinds == ["int64", "uint64", "int64", "bool", "float64", "complex128", "uint8", "(int64, float64)"]


def test_complex_numbers_and_tuples_are_flattened() -> None:
    assert numba_packed(np.complex64(1 + 2j), 3 - 4j) == struct.pack("<ffdd", 1, 2, 3, -4)
    assert numba_packed((np.int32(1), (2.0, np.zeros(3, np.uint8)))) == struct.pack(
        "<i4xdQQqqQqq", 1, 2.0, 0, 0, 3, 1, ADDRESS, 3, 1
    )


def test_a_record_is_passed_by_address() -> None:
    records = np.zeros(2, [("x", np.float32), ("y", np.float64)])
    assert numba_packed(records[0]) == struct.pack("<Q", ADDRESS)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((2, 3)), "float64[:, ::1]"),
        (np.zeros((2, 3), order="F"), "float64[::1, :]"),
        (np.zeros((4, 3))[::2], "float64[:, :]"),
        (np.zeros((1, 3))[:, ::2][:, :1], "float64[:, ::1]"),
        (np.zeros((0, 4))[:, ::2], "float64[:, ::1]"),
        (np.zeros(3).reshape(3, 1).T, "float64[:, ::1]"),
        (np.array(1), "int64[]"),
    ],
)
def test_the_layout_of_an_array_is_numpys(array: np.ndarray, text: str) -> None:
    assert str(numba_type(array)) == text
    facts = array_facts(array)
    assert (facts.layout == "C") == array.flags.c_contiguous
    if not array.flags.c_contiguous:
        assert (facts.layout == "F") == array.flags.f_contiguous


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "must be an array, a number, a bool or a tuple of these, but a list came. Make it an array"),
        (None, "but None came. A kernel has no optional arguments"),
        ("text", "but a str came. A GPU has no strings"),
        (2**64, "must fit into 64 bits"),
        (np.array(["a"]), "must have a dtype that a GPU knows"),
        (np.array([None]), "must have a dtype that a GPU knows"),
        (np.zeros(2, ">f4"), "must be in this machine's byte order"),
        (((1, [2]),), r"'p0\[0\]\[1\]' must be"),
    ],
)
def test_values_that_no_kernel_takes_are_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"'p0.*{message}" if "p0" not in message else message):
        numba_packed(value)


# ---- CUDA C++

SOURCE = """
#include <cuda_fp16.h>
struct Pair { short a; double b; };
extern "C" __global__ void k(const float* x, double* y, char c, short s, int n, unsigned u, long long w, float f,
                             double d, bool b, __half h, Pair p, void* any, float4* quads) {}
"""


@pytest.fixture(scope="module")
def parameters() -> dict[str, ParameterType]:
    return {each.name: each for each in nvrtc.compile_kernel(SOURCE, "k").parameters}


def test_a_cpp_buffer_by_hand(parameters: dict[str, ParameterType]) -> None:
    pair = np.zeros((), np.dtype([("a", np.int16), ("b", np.float64)], align=True))
    pair["a"], pair["b"] = 3, 4.5
    buffer = packed(
        parameters.values(), np.zeros(2, np.float32), np.zeros(2), 1, -2, 3, 4, -5, 6, 7, True, 0.5, pair[()], None,
        np.zeros(8, np.float32),
    )  # fmt: skip
    assert buffer == struct.pack(
        "<QQbxhiIxxxxqfxxxxd?xHxxxxh6xdQQ",
        ADDRESS, ADDRESS, 1, -2, 3, 4, -5, 6.0, 7.0, True, 0x3800, 3, 4.5, 0, ADDRESS,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", 7, struct.pack("<i", 7)),
        ("n", 7.0, struct.pack("<i", 7)),
        ("n", np.int64(-7), struct.pack("<i", -7)),
        ("n", True, struct.pack("<i", 1)),
        ("n", np.array(9), struct.pack("<i", 9)),
        ("u", -1, struct.pack("<I", 0xFFFFFFFF)),
        ("f", 2, struct.pack("<f", 2)),
        ("f", np.float64(0.1), struct.pack("<f", 0.1)),
        ("f", 1e300, struct.pack("<f", float("inf"))),
        ("d", np.float32(0.5), struct.pack("<d", 0.5)),
        ("b", np.bool_(True), b"\1"),
        ("h", 1.5, struct.pack("<e", 1.5)),
        ("h", np.float16(1.5), struct.pack("<e", 1.5)),
    ],
)
def test_scalars_are_converted_to_the_parameters_type(
    parameters: dict[str, ParameterType], name: str, value: Any, expected: bytes
) -> None:
    assert packed([parameters[name]], value) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "x",
            np.zeros(3),
            "'x' is const float*, but float64 array (3,) came. The kernel steps through it in items of 4",
        ),
        ("x", np.zeros(3, np.float16), "in items of 4 bytes, but its items have 2. Convert it: x.astype(np.float32)."),
        (
            "x",
            np.zeros(6, np.float32)[::2],
            "not contiguous, and a pointer has no strides: pass np.ascontiguousarray(x)",
        ),
        ("x", 5, "'x' is const float*, but int 5 came. Pass an array."),
        ("x", [1.0], "Pass an array."),
        ("n", 2.5, "'n' is int, but float 2.5 came. It must be a whole number"),
        ("n", float("nan"), "must be a whole number"),
        ("n", 2**32, "does not fit into 32 bits"),
        ("n", np.zeros(3, np.int32), "Pass one number, e.g. n[0]."),
        ("n", "3", "Pass a number."),
        ("f", 1j, "Pass a number."),
        ("p", b"123", "'p' is Pair, but bytes"),
        ("p", 3, "Pass 16 bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    parameters: dict[str, ParameterType], name: str, value: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        packed([parameters[name]], value)


def test_built_in_vectors_take_tuples() -> None:
    source = 'extern "C" __global__ void k(float3 a, uchar2 b, longlong1 c, double4 d) {}'
    kinds = nvrtc.compile_kernel(source, "k").parameters
    buffer = packed(kinds, (1, 2.5, 3), [4, 255], (-6,), np.arange(4.0))
    assert buffer == struct.pack("<3f2Bxxq8x4d", 1, 2.5, 3, 4, 255, -6, 0, 1, 2, 3)
    for wrong in ((1, 2), (1, 2, 3, 4), 1.0):
        with pytest.raises(ArgumentError, match="'a' is float3"):
            packed(kinds[:1], wrong)


def test_a_masked_array_is_refused() -> None:
    masked = np.ma.zeros(3)
    for kinds in ([ParameterType("pointer", "x")], None):
        with pytest.raises(ArgumentError, match="masked array"):
            packed(kinds, masked) if kinds else numba_packed(masked)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, np.dtype(np.float32).newbyteorder()), "must be in this machine's byte order"),
        (np.array([None, 1, "x"]), "must have a dtype that a GPU knows, but object came"),
        (np.zeros(3, [("a", "f4"), ("b", "O")]), "must have a dtype that a GPU knows"),
    ],
)
def test_a_pointer_takes_no_array_whose_bytes_mean_something_else(array: np.ndarray, message: str) -> None:
    for kind in (ParameterType("pointer", "x"), ParameterType("pointer", "x", array.dtype.newbyteorder("="))):
        with pytest.raises(ArgumentError, match=f"Argument 'x' {message}"):
            packed([kind], array)


def test_pointers_take_any_array_of_their_item_size_and_others_any_array(parameters: dict[str, ParameterType]) -> None:
    for value in (np.zeros(3, np.int32), np.zeros((2, 2), np.float32, order="F"), np.zeros(0, np.float32)):
        assert packed([parameters["x"]], value) == struct.pack("<Q", ADDRESS)
    for name in ("any", "quads"):
        for dtype in (np.float32, np.float16, np.complex128, [("a", "i1"), ("b", "f8")]):
            assert packed([parameters[name]], np.zeros(4, dtype)) == struct.pack("<Q", ADDRESS)


def test_the_count_is_checked_with_all_names(parameters: dict[str, ParameterType]) -> None:
    with pytest.raises(ArgumentError) as caught:
        packed([parameters["x"], parameters["n"]], 1)
    assert str(caught.value) == "k takes 2 arguments (const float* x, int n), but 1 came (int 1)."
    with pytest.raises(ArgumentError, match="takes 0 arguments"):
        packed([], 1)


def test_a_device_array_and_foreign_arrays_count_as_arrays() -> None:
    interface = {"typestr": "<f4", "shape": (2, 3), "strides": None, "data": (64, True), "version": 3}
    foreign = types.SimpleNamespace(__cuda_array_interface__=interface)
    assert array_facts(foreign) == ArrayFacts(np.dtype(np.float32), (2, 3), (12, 4), True)
    assert array_facts(GpuArray) is None
    assert array_facts(3) is None


# ---- PTX as it is


def test_ptx_tells_floats_from_integers_and_takes_arrays_for_64_bits() -> None:
    text = """
    .visible .entry k(  // a comment with .entry fake(
        .param .u64 .ptr .global .align 4 a, .param .u64 b, .param .u32 n, .param .f32 f, .param .align 8 .b8 s[24])
    { ret; }"""
    ptx = ptx_source.as_ptx_text(text, "k", (8, 0))
    kinds = [(each.kind, each.size, each.align) for each in ptx.parameters]
    assert kinds == [("pointer", 8, 8), ("scalar", 8, 8), ("scalar", 4, 4), ("scalar", 4, 4), ("struct", 24, 8)]
    buffer = packed(ptx.parameters, np.zeros(3), np.zeros(3), 5, 1.5, bytes(range(24)))
    assert buffer == struct.pack("<QQif", ADDRESS, ADDRESS, 5, 1.5) + bytes(range(24))
    assert packed(ptx.parameters[1:2], 77) == struct.pack("<Q", 77)
