"""Bodies, fractals and rays."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda

SPHERES = np.dtype(
    [("x", np.uint64), ("y", np.uint64), ("z", np.uint64), ("radius", np.uint64), ("count", np.int32)], align=True
)


@cuda.jit(fastmath=True)
def attract_python(bodies, pulls):
    i = cuda.grid(1)
    if i < bodies.shape[0]:
        px = py = pz = numba.float32(0)
        for j in range(bodies.shape[0]):
            dx, dy, dz = bodies[j, 0] - bodies[i, 0], bodies[j, 1] - bodies[i, 1], bodies[j, 2] - bodies[i, 2]
            strength = bodies[j, 3] / math.sqrt(dx * dx + dy * dy + dz * dz + numba.float32(0.01)) ** 3
            px += strength * dx
            py += strength * dy
            pz += strength * dz
        pulls[i, 0], pulls[i, 1], pulls[i, 2] = px, py, pz


@cuda.jit(device=True)
def escape(c, most):
    """Iterations of z -> z^2 + c until z leaves the circle of radius 2."""
    z = 0j
    for count in range(most):
        if z.real * z.real + z.imag * z.imag > 4:
            return count
        z = z * z + c
    return most


@cuda.jit
def mandelbrot_python(counts, left, top, step):
    j, i = cuda.grid(2)
    if i < counts.shape[0] and j < counts.shape[1]:
        counts[i, j] = escape(complex(left + j * step, top - i * step), 60)


def pulls_on(bodies: np.ndarray) -> np.ndarray:
    away = (bodies[None, :, :3] - bodies[:, None, :3]).astype(np.float64)
    strength = bodies[None, :, 3] / (np.sum(away**2, axis=2) + 0.01) ** 1.5
    return np.einsum("ij,ijk->ik", strength, away)


@pytest.mark.parametrize(("n", "block"), [(45, 32), (10, 7)])
def test_bodies(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    bodies, pulls = random.random((n, 4)).astype(np.float32), np.zeros((n, 3), np.float32)
    run(kernel("particles.cu", "attract")[-(-n // block), block], bodies, pulls, n, 0.01)
    np.testing.assert_allclose(pulls, pulls_on(bodies), rtol=1e-4, atol=1e-3)


def test_bodies_in_python(run: Runner, random: np.random.Generator) -> None:
    bodies, pulls = random.random((20, 4)).astype(np.float32), np.zeros((20, 3), np.float32)
    run(attract_python[2, 16], bodies, pulls)
    np.testing.assert_allclose(pulls, pulls_on(bodies), rtol=1e-4, atol=1e-3)


def escapes(width: int, height: int, left: float, top: float, step: float, most: int) -> list[list[int]]:
    def count(c: complex) -> int:
        x = y = 0.0
        for done in range(most):
            if x * x + y * y > 4:
                return done
            x, y = x * x - y * y + c.real, 2 * (x * y) + c.imag
        return most

    return [[count(complex(left + j * step, top - i * step)) for j in range(width)] for i in range(height)]


@pytest.mark.parametrize("block", [(32, 4), (8, 8), (5, 3)])
def test_mandelbrot(run: Runner, block: tuple) -> None:
    counts = np.zeros((13, 21), np.uint16)
    grid = (-(-21 // block[0]), -(-13 // block[1]))
    run(kernel("particles.cu", "mandelbrot")[grid, block], counts, 21, 13, -2.0, 1.25, 0.1875, 60)
    assert counts.tolist() == escapes(21, 13, -2.0, 1.25, 0.1875, 60)


def test_mandelbrot_in_python(run: Runner) -> None:
    counts = np.zeros((9, 17), np.int32)
    run(mandelbrot_python[(2, 2), (10, 6)], counts, -2.0, 1.25, 0.1875)
    wanted = np.array(escapes(17, 9, -2.0, 1.25, 0.1875, 60))
    assert (np.abs(counts - wanted) <= 1).all() and (
        counts == wanted
    ).mean() > 0.97  # the compiler may fuse multiply-adds


def test_julia(run: Runner) -> None:
    inside = np.zeros((30, 30), np.bool_)
    run(kernel("particles.cu", "julia")[(4, 5), (8, 6)], inside, 30, -0.5, 0.3)
    re = (3 * np.arange(30) / 30 - 1.5).astype(np.complex128)
    z = re[None] + 1j * re[:, None]
    for _ in range(40):
        z = np.where(np.abs(z) <= 2, z * z + (-0.5 + 0.3j), 10)
    differing = inside != (np.abs(z) < 5)
    assert inside.any() and not inside.all() and differing.sum() <= 2  # points on the edge, in single precision


def test_rays(run: Runner, random: np.random.Generator) -> None:
    places = random.integers(1, 20, (4, 9)).astype(np.float32)
    x, y, z, radius = places[0], places[1], places[2] + 30, 1 + places[3] / 4
    # A struct with pointers in it: the arrays must be on the device, which gives their addresses.
    on_device = [cuda.to_device(column) for column in (x, y, z, radius)]
    spheres = np.zeros((), SPHERES)
    for field, column in zip(("x", "y", "z", "radius"), on_device, strict=True):
        spheres[field] = column.address
    spheres["count"] = 9
    hit, depth = np.zeros((18, 22), np.int32), np.zeros((18, 22), np.float32)
    run(kernel("particles.cu", "cast_rays")[(3, 5), (8, 4)], spheres[()], hit, depth, 22, 18)
    py, px = np.mgrid[:18, :22]
    left = radius**2 - (px[..., None] - x) ** 2 - (py[..., None] - y) ** 2
    reached = np.where(left >= 0, z - np.sqrt(np.maximum(left, 0)), np.inf)
    np.testing.assert_allclose(depth, reached.min(-1), rtol=1e-5)
    assert (hit == np.where(np.isinf(reached.min(-1)), -1, reached.argmin(-1))).all()
