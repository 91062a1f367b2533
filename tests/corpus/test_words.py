"""Hash tables, checksums, string search, big integers, a cipher's round."""

from __future__ import annotations

import zlib

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda

EMPTY = 2**64 - 1


@cuda.jit
def table_insert_python(keys, slots):
    i = cuda.grid(1)
    if i < keys.size:
        slot = (keys[i] * 7919) % slots.size
        while True:
            there = cuda.atomic.cas(slots, slot, -1, keys[i])
            if there == -1 or there == keys[i]:
                return
            slot = (slot + 1) % slots.size


@cuda.jit
def fnv_python(text, starts, sums):
    m = cuda.grid(1)
    if m < sums.size:
        value = numba.uint32(2166136261)
        for i in range(starts[m], starts[m + 1]):
            value = numba.uint32((value ^ text[i]) * numba.uint32(16777619))
        sums[m] = value


@cuda.jit
def bits_python(x, out):
    """Counts of bits, leading and trailing zeros, reversal."""
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = cuda.popc(x[i])
        out[i, 1] = cuda.clz(x[i])
        out[i, 2] = cuda.ffs(x[i])
        out[i, 3] = cuda.brev(x[i])


@pytest.mark.parametrize("block", [32, 50])
def test_hash_table(run: Runner, random: np.random.Generator, block: int) -> None:
    keys = random.integers(0, 40, 100).astype(np.uint32) * np.uint32(1_000_003)
    slots = np.full(64, EMPTY, np.uint64)
    run(kernel("words.cu", "table_insert")[-(-100 // block), block], keys, 100, slots, 63)
    asked = (np.arange(60) * 1_000_003).astype(np.uint32)
    counts = np.zeros(60, np.int32)
    run(kernel("words.cu", "table_find")[2, 32], asked, 60, slots, 63, counts)
    assert counts.tolist() == [int((keys == key).sum()) for key in asked]
    assert (slots != EMPTY).sum() == np.unique(keys).size


def test_hash_table_in_python(run: Runner, random: np.random.Generator) -> None:
    keys, slots = random.integers(0, 50, 70).astype(np.int64), np.full(61, -1, np.int64)
    run(table_insert_python[3, 25], keys, slots)
    assert (np.sort(slots[slots >= 0]) == np.unique(keys)).all()


def messages(random: np.random.Generator, count: int) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Messages, all their bytes, and where each starts."""
    texts = [random.bytes(int(length)) for length in random.integers(0, 30, count)]
    return texts, np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]).astype(np.int32)


def test_crc32(run: Runner, random: np.random.Generator) -> None:
    texts, data, starts = messages(random, 37)
    sums = np.zeros(37, np.uint32)
    run(kernel("words.cu", "crc32")[2, 20], data, starts, sums, 37)
    assert sums.tolist() == [zlib.crc32(text) for text in texts]


def test_fnv_in_python(run: Runner, random: np.random.Generator) -> None:
    texts, data, starts = messages(random, 20)
    sums = np.zeros(20, np.uint32)
    run(fnv_python[1, 32], data, starts, sums)

    def fnv(text: bytes) -> int:
        value = 2166136261
        for byte in text:
            value = (value ^ byte) * 16777619 % 2**32
        return value

    assert sums.tolist() == [fnv(text) for text in texts]


@pytest.mark.parametrize("pattern", ["a", "ab?a", "a??b?b?a"])
def test_string_search(run: Runner, random: np.random.Generator, pattern: str) -> None:
    text = bytes(random.choice(list(b"ab"), 201).astype(np.uint8))
    value = int.from_bytes(pattern.encode().replace(b"?", b"\0"), "little")
    mask = int.from_bytes(bytes(0 if letter == "?" else 255 for letter in pattern), "little")
    places, found = np.zeros(201, np.int32), np.zeros(1, np.int32)
    given = np.frombuffer(text, np.int8)
    run(kernel("words.cu", "find_pattern")[4, 64], given, 201, value, mask, len(pattern), places, found)
    matches = [
        start
        for start in range(201 - len(pattern) + 1)
        if all(p in ("?", chr(c)) for p, c in zip(pattern, text[start : start + len(pattern)], strict=True))
    ]
    assert sorted(places[: found[0]].tolist()) == matches


def as_integers(limbs: np.ndarray) -> list[int]:
    """Rows of limbs, least first, as Python's integers."""
    return [int.from_bytes(row.tobytes(), "little") for row in limbs]


def test_sums_of_256_bits(run: Runner, random: np.random.Generator) -> None:
    a, b = random.integers(0, 2**32, (2, 35, 8), np.uint32)
    a[0], b[0] = 2**32 - 1, 0
    b[0, 0] = 1  # the carry runs through all limbs
    total, carry = np.zeros((35, 8), np.uint32), np.zeros(35, np.uint32)
    run(kernel("words.cu", "add_256")[2, 32], a, b, total, carry, 35)
    found = [value + (int(over) << 256) for value, over in zip(as_integers(total), carry, strict=True)]
    assert found == [x + y for x, y in zip(as_integers(a), as_integers(b), strict=True)]
    assert carry[0] == 1 and total[0].max() == 0


@pytest.mark.parametrize("limbs", [1, 3])
def test_big_products(run: Runner, random: np.random.Generator, limbs: int) -> None:
    a, b = random.integers(0, 2**64, (2, 21, limbs), np.uint64)
    a[0] = b[0] = 2**64 - 1
    product = np.zeros((21, 2 * limbs), np.uint64)
    run(kernel("words.cu", f"multiply_big<{limbs}>")[1, 32], a, b, product, 21)
    assert as_integers(product) == [x * y for x, y in zip(as_integers(a), as_integers(b), strict=True)]


def test_powers_in_128_bits(run: Runner, random: np.random.Generator) -> None:
    modulus, exponent = 2**61 - 1, 1234567
    base, out = random.integers(0, 2**64, 20, np.uint64), np.zeros(20, np.uint64)
    run(kernel("words.cu", "power_modulo")[1, 32], base, exponent, modulus, out, 20)
    assert out.tolist() == [pow(x, exponent, modulus) for x in base.tolist()]


def test_round_of_a_cipher(run: Runner, random: np.random.Generator) -> None:
    blocks, key = random.integers(0, 256, (13, 4, 4), np.uint8), random.integers(0, 256, (4, 4), np.uint8)
    table, out = random.permutation(256).astype(np.uint8), np.zeros((13, 4, 4), np.uint8)
    run(kernel("words.cu", "cipher_round")[2, 32], blocks, table, key, out, 13)

    def times(x: int, factor: int) -> int:  # in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1
        product = 0
        for bit in range(8):
            product ^= (x << bit) * (factor >> bit & 1)
        for bit in range(15, 7, -1):
            product ^= (0x11B << (bit - 8)) * (product >> bit & 1)
        return product

    matrix = [[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]]
    for block, mine in zip(blocks, out, strict=True):
        for column in range(4):
            shifted = [int(table[block[(column + row) % 4, row]]) for row in range(4)]
            for row in range(4):
                wanted = int(key[column, row])
                for factor, value in zip(matrix[row], shifted, strict=True):
                    wanted ^= times(value, factor)
                assert mine[column, row] == wanted


def test_bits_in_python(run: Runner, random: np.random.Generator) -> None:
    x = random.integers(0, 2**32, 40, np.uint32)
    x[:3] = 0, 1, 2**31
    out = np.zeros((40, 4), np.uint32)
    run(bits_python[2, 32], x, out)
    texts = [f"{value:032b}" for value in x]
    assert out[:, 0].tolist() == [text.count("1") for text in texts]
    assert out[:, 1].tolist() == [32 if "1" not in text else text.index("1") for text in texts]
    assert out[:, 2].tolist() == [0 if "1" not in text else text[::-1].index("1") + 1 for text in texts]
    assert out[:, 3].tolist() == [int(text[::-1], 2) for text in texts]
