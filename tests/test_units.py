"""Numbers as texts: three digits, the right prefix, nothing lost at the borders."""

from __future__ import annotations

import pytest

from gpulab.units import bytes_text, count_text, range_text, seconds_text, three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234.4, "1,230"),
        (99.95, "100"),
        (78.94, "78.9"),
        (4.556, "4.56"),
        (5.0, "5"),
        (0.12345, "0.123"),
        (0.00012345, "0.000123"),
        (-2.5, "-2.5"),
        (12_345_678, "12,300,000"),
    ],
)
def test_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.62e-6, "2.62 µs"),
        (0.9994e-3, "999 µs"),
        (0.9996e-3, "1 ms"),
        (0.0123, "12.3 ms"),
        (1.5, "1.5 s"),
        (3e-9, "3 ns"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_a_range_has_one_unit() -> None:
    assert range_text(0.9e-3, 1.25e-3) == "0.9 to 1.25 ms"
    assert range_text(89.7e-6, 112e-6) == "89.7 to 112 µs"
    assert range_text(0.5, 2) == "0.5 to 2 s"


def test_capacities_and_counts() -> None:
    assert (bytes_text(100), bytes_text(48 * 1024), bytes_text(40 * 1024**2)) == ("100 bytes", "48 KiB", "40 MiB")
    assert (count_text(1_048_576), count_text(28.0), count_text(14.2857)) == ("1,048,576", "28", "14.3")
