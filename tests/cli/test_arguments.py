"""What users type after ``--arg``, ``--grid`` and ``--set``."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.cli.arguments import parse_argument, parse_dimensions, parse_setting
from gpulab.errors import ArgumentError


def test_an_array_has_dtype_shape_and_contents() -> None:
    array = parse_argument("in:float64:3x5:arange").make(0)
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, np.arange(15.0).reshape(3, 5))


@pytest.mark.parametrize(("text", "value"), [("out:int16:7", 0), ("inout:int16:7:zeros", 0), ("in:int16:7:ones", 1)])
def test_constant_contents(text: str, value: int) -> None:
    np.testing.assert_array_equal(parse_argument(text).make(0), np.full(7, value, np.int16))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int8", "uint64", "bool"])
def test_random_contents_differ_between_arguments_but_not_between_runs(dtype: str) -> None:
    argument = parse_argument(f"in:{dtype}:1000:random")
    array = argument.make(0)
    assert array.dtype == dtype
    assert len(np.unique(array)) > 1
    np.testing.assert_array_equal(array, argument.make(0))
    assert (array != argument.make(1)).any()


def test_random_contents_have_the_stated_range() -> None:
    reals, whole = (parse_argument(f"in:{dtype}:10000:random").make(0) for dtype in ("float32", "int32"))
    assert (reals.min() >= 0, reals.max() < 1, whole.min(), whole.max()) == (True, True, 0, 99)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("float32=2", np.float32(2)),
        ("float64=1e-3", np.float64(0.001)),
        ("int64=-5", np.int64(-5)),
        ("uint32=0xffffffff", np.uint32(0xFFFFFFFF)),
        ("bool=true", np.bool_(True)),
        ("bool=0", np.bool_(False)),
    ],
)
def test_a_scalar_has_the_type_that_is_named(text: str, value: np.generic) -> None:
    scalar = parse_argument(text).make(0)
    assert scalar == value
    assert scalar.dtype == value.dtype


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("float32", "in|out|inout"),
        ("input:float32:8", "in|out|inout"),
        ("in:float32:8:random:9", "in|out|inout"),
        ("in:float31:8", "'float31'"),
        ("in:str:8", "'str'"),
        ("in:float32:8x", "'8x'"),
        ("in:float32:-8", "'-8'"),
        ("in:float32:8:noise", "'noise'"),
        ("int8=300", "'300'"),
        ("int32=2.5", "'2.5'"),
        ("bool=maybe", "'maybe'"),
        ("float32=", "''"),
    ],
)
def test_mistakes_are_named(text: str, hint: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_argument(text)
    assert hint in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize(("text", "sizes"), [("4096", (4096,)), ("64x32", (64, 32)), ("8,4,2", (8, 4, 2))])
def test_dimensions(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_dimensions(text) == sizes


@pytest.mark.parametrize("text", ["", "x", "16x", "-1", "1.5", "²"])
def test_dimensions_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentError, match="16x16"):
        parse_dimensions(text)


@pytest.mark.parametrize(
    ("text", "setting"), [("n=2048", ("n", 2048)), ("alpha=0.5", ("alpha", 0.5)), ("layout=soa", ("layout", "soa"))]
)
def test_settings(text: str, setting: tuple[str, object]) -> None:
    name, value = parse_setting(text)
    assert (name, value) == setting
    assert type(value) is type(setting[1])


@pytest.mark.parametrize("text", ["n", "=3", "n="])
def test_settings_need_a_name_and_a_value(text: str) -> None:
    with pytest.raises(ArgumentError, match="NAME=VALUE"):
        parse_setting(text)
