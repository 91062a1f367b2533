"""Device `printf`: conversions as the C library writes them, arguments as CUDA passes them."""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys

import numpy as np
import pytest
from ptx_harness import run

from gpulab.emulator.printf import format_printf
from gpulab.errors import KernelFault
from gpulab.toolchain.nvrtc import compile_kernel

INTEGERS = (0, 1, -1, 7, 255, -129, 2**31 - 1, -(2**31))
LONGS = (0, 42, -1, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -2.5, 0.1, 1e-5, 123456789.125, 6.02e23, 5e-324, float("inf"), -float("inf"), 1 + 2**-52)
LAYOUTS = [
    flags + width + precision
    for flags, width, precision in itertools.product(("", "-", "+", " ", "0", "#", "#0", "-+"), ("", "3", "14"), ("", ".", ".0", ".2", ".9"))
]  # fmt: skip


def ours(template: str, *values: object) -> str:
    """Format values that lie in a buffer at address 256 as CUDA lays them out; strings stand behind."""
    buffer, strings = b"", b""
    for value in values:
        if isinstance(value, str):
            buffer += bytes(-len(buffer) % 8) + struct.pack("<Q", 4096 + len(strings))
            strings += value.encode() + b"\0"
        else:
            assert isinstance(value, bytes)
            buffer += bytes(-len(buffer) % len(value)) + value

    def read(address: int, count: int) -> bytes:
        found = strings[address - 4096 :][:count] if address >= 4096 else buffer[address - 256 :][:count]
        assert len(found) == count
        return found

    return format_printf(template, 256, read)[0]


def c_library(template: str, value: object) -> str:
    room = ctypes.create_string_buffer(6000)
    ctypes.CDLL(None).snprintf(room, ctypes.c_size_t(len(room)), template.encode(), value)
    return room.value.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="the C library is asked by the names that it has on Linux")
@pytest.mark.parametrize("kind", [*"diuxXo", "hhd", "hu", "hhx", "lld", "llu", "llx", "zu", "jd", "ld", *"eEfFgGaA"])
def test_numbers_look_as_in_c(kind: str) -> None:
    if kind[-1] in "eEfFgGaA":
        cases = [(struct.pack("<d", value), ctypes.c_double(value)) for value in FLOATS]
    elif kind[0] in "lzj":
        cases = [(struct.pack("<q", value), ctypes.c_longlong(value)) for value in LONGS]
    else:
        cases = [(struct.pack("<i", value), ctypes.c_int(value)) for value in INTEGERS]
    for layout in LAYOUTS:
        for packed, value in cases:
            template = f"<%{layout}{kind}>"
            assert ours(template, packed) == c_library(template, value), (template, value)


def test_strings_characters_and_pointers() -> None:
    assert ours("%s|%6s|%-6s|%.2s|%%|%c%3c", "one", "two", "three", "four", b"A\0\0\0", b"B\0\0\0") == (
        "one|   two|three |fo|%|A  B"
    )
    assert (
        ours("%p %20p", struct.pack("<Q", 0xAB << 40), struct.pack("<Q", 16)) == "0xab0000000000                 0x10"
    )
    assert ours("%*d|%-*d|%.*f", *(struct.pack("<i", n) for n in (5, 42, -4, 7, 1)), struct.pack("<d", 2.25)) == (
        "   42|7   |2.2"
    )
    assert ours("100%") == "100%"
    assert ours("%q %5y") == "%q %5y"


def test_the_33rd_argument_is_not_taken() -> None:
    values = [struct.pack("<i", n) for n in range(33)]
    assert ours("%d " * 33, *values) == " ".join(map(str, range(32))) + " %d "


SOURCE = r"""
extern "C" __global__ void print_all(double x, long long big, int *out) {
    const char *names[2] = {"even", "odd"};
    if (threadIdx.x < 2)
        out[threadIdx.x] = printf("%d %s %c %5.2f %e %g %llu %zu %x %p %hhd %%\n", (int)threadIdx.x, names[threadIdx.x & 1],
            'a' + (int)threadIdx.x, x, x, (float)x, big, sizeof(double), 255u, (void *)0x1234, (char)-2);
    if (threadIdx.x == 5) out[5] = printf("no arguments\n");
}
extern "C" __global__ void print_wildly(const char *where) { printf("%s", where); }
"""


def test_a_kernel_prints_every_kind(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = np.full(8, -7, np.int32)
    text = compile_kernel(SOURCE, "print_all").text
    run(engine, text, np.float64(2.5), np.int64(2**40), out, block=8, entry="print_all")
    assert capsys.readouterr().out == (
        "0 even a  2.50 2.500000e+00 2.5 1099511627776 8 ff 0x1234 -2 %\n"
        "1 odd b  2.50 2.500000e+00 2.5 1099511627776 8 ff 0x1234 -2 %\n"
        "no arguments\n"
    )
    assert out.tolist() == [11, 11, -7, -7, -7, 0, -7, -7]


@pytest.mark.parametrize("address", [0, 99, 1 << 40, (1 << 40) + 5000, (2 << 40) + 10**6, 2**63])
def test_a_wild_pointer_to_a_string_is_a_fault(engine: str, address: int) -> None:
    text = compile_kernel(SOURCE, "print_all").text
    with pytest.raises(KernelFault, match=r"print_wildly at .*reads 1 bytes at address") as caught:
        run(engine, text, np.uint64(address), block=3, entry="print_wildly")
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("out-of-bounds", (0, 0, 0))
