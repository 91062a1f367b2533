"""Convolutions, the cosine transform and the Fourier transform."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda

TAPS = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625])
EDGES = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])


@cuda.jit
def edges_python(image, out):
    taps = cuda.const.array_like(EDGES)
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = 0.0
        for di in range(3):
            for dj in range(3):
                total += taps[di, dj] * image[i + di, j + dj]
        out[i, j] = total


@cuda.jit
def fourier_python(x, roots, out):
    """The plain sum, on complex numbers."""
    k = cuda.grid(1)
    if k < x.size:
        total = 0j
        for i in range(x.size):
            total += x[i] * roots[i * k % x.size].conjugate()
        out[k] = total


def test_convolution_of_a_line(run: Runner, random: np.random.Generator) -> None:
    x, out = random.random(150).astype(np.float32), np.zeros(150, np.float32)
    run(kernel("filters.cu", "convolve_line")[3, 64], x, out, x.size)
    np.testing.assert_allclose(out, np.convolve(x, TAPS, "same"), rtol=1e-5)


@pytest.mark.parametrize("block", [(16, 4), (5, 6)])
def test_separable_convolution(run: Runner, random: np.random.Generator, block: tuple) -> None:
    x = random.random((11, 23)).astype(np.float32)
    halfway, out = np.zeros_like(x), np.zeros_like(x)
    grid = (-(-23 // block[0]), -(-11 // block[1]))
    bound = kernel("filters.cu", "convolve_axis")[grid, block]
    run(bound, x, halfway, 23, 11, False)
    run(bound, halfway, out, 23, 11, True)
    padded = np.pad(x, 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    np.testing.assert_allclose(out, np.einsum("ijkl,k,l", windows, TAPS, TAPS), rtol=1e-5)


def test_sharpening_bytes(run: Runner, random: np.random.Generator) -> None:
    image = random.integers(0, 256, (9, 14, 4), np.uint8)
    out = np.zeros_like(image)
    run(kernel("filters.cu", "sharpen_image")[(2, 3), (8, 4)], image, out, 14, 9)
    padded = np.pad(image.astype(int), ((1, 1), (1, 1), (0, 0)))
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    wanted = np.clip(5 * padded[1:-1, 1:-1] - around, 0, 255)
    assert (out[..., :3] == wanted[..., :3]).all() and (out[..., 3] == image[..., 3]).all()


def test_cosine_transform(run: Runner, random: np.random.Generator) -> None:
    x = random.random((16, 24)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel("filters.cu", "dct_8x8")[(3, 2), (8, 8)], x, out, 24)
    u, place = np.mgrid[:8, :8]
    basis = np.sqrt(np.where(u, 2, 1) / 8) * np.cos((2 * place + 1) * u * np.pi / 16)
    blocks = x.reshape(2, 8, 3, 8).transpose(0, 2, 1, 3)
    wanted = (basis @ blocks @ basis.T).transpose(0, 2, 1, 3).reshape(16, 24)
    np.testing.assert_allclose(out, wanted, atol=2e-6)


@pytest.mark.parametrize(("log_n", "block"), [(6, 32), (8, 64), (3, 5)])
def test_fourier_transform(run: Runner, random: np.random.Generator, log_n: int, block: int) -> None:
    n = 1 << log_n
    x = (random.random((2, n)) + 1j * random.random((2, n))).astype(np.complex64)
    data = x.copy()
    transform = kernel("filters.cu", "fft")[2, block, 0, 8 * n]
    run(transform, data, log_n, -1.0)
    np.testing.assert_allclose(data, np.fft.fft(x), atol=1e-4)
    run(transform, data, log_n, 1.0)
    np.testing.assert_allclose(data / n, x, atol=1e-6)


def test_edges_in_python(run: Runner, random: np.random.Generator) -> None:
    image = random.random((12, 17))
    out = np.zeros((10, 15))
    run(edges_python[(2, 4), (6, 4)], image, out)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    np.testing.assert_allclose(out, np.einsum("ijkl,kl", windows, EDGES), rtol=1e-12, atol=1e-14)


def test_fourier_in_python(run: Runner, random: np.random.Generator) -> None:
    x = random.random(20) + 1j * random.random(20)
    roots, out = np.exp(2j * np.pi * np.arange(20) / 20), np.zeros_like(x)
    run(fourier_python[1, 32], x, roots, out)
    np.testing.assert_allclose(out, np.fft.fft(x), rtol=1e-12)
