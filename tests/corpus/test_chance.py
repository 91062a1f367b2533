"""Random numbers, Monte Carlo, prices of options."""

from __future__ import annotations

import math

import numba
import numpy as np
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def black_scholes_python(spot, strike, years, call, rate, volatility):
    i = cuda.grid(1)
    if i < spot.size:
        deviation = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / deviation
        below1 = 0.5 * math.erfc(-d1 / math.sqrt(2.0))
        below2 = 0.5 * (1 + math.erf((d1 - deviation) / math.sqrt(2.0)))
        call[i] = spot[i] * below1 - strike[i] * math.exp(-rate * years[i]) * below2


@cuda.jit
def walk_python(states, places, steps):
    i = cuda.grid(1)
    if i < states.size:
        state = states[i]
        for _ in range(steps):
            state = (state ^ (state << numba.uint64(13))) & numba.uint64(0xFFFFFFFFFFFFFFFF)
            state ^= state >> numba.uint64(7)
            state ^= state << numba.uint64(17)
            places[i] += 1 if state >> numba.uint64(63) else -1
        states[i] = state


def mixed(counter: np.ndarray, key: int) -> np.ndarray:
    """The kernels' random bits; shape as `counter`, dtype uint64 with values below 2**32."""
    counter = counter.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    other = np.full_like(counter, key ^ 0x9E3779B9)
    for number in range(6):
        product = counter * np.uint64(0xD2511F53)
        counter = (product >> np.uint64(32)) ^ other ^ np.uint64((key + number * 0x9E3779B9) % 2**32)
        other = product & np.uint64(0xFFFFFFFF)
    return counter ^ other


def uniform(counter: np.ndarray, key: int) -> np.ndarray:
    return (mixed(counter, key) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def test_pi(run: Runner) -> None:
    inside = np.zeros(1, np.uint64)
    run(kernel("chance.cu", "count_inside")[2, 64], inside, 3, 12345)
    points = np.arange(2 * 64 * 3, dtype=np.uint64)
    x, y = uniform(2 * points, 12345), uniform(2 * points + np.uint64(1), 12345)
    assert inside[0] == (x * x + y * y <= 1).sum()
    assert abs(4 * inside[0] / points.size - math.pi) < 0.3


def test_price_of_paths(run: Runner) -> None:
    sums, steps, paths = np.zeros(2), 5, 2 * 48
    run(kernel("chance.cu", "price_paths")[2, 48], sums, steps, 100.0, 98.0, 0.001, 0.05, 99)
    numbers = uniform(np.arange(paths * steps * 2, dtype=np.uint64), 99).astype(np.float64).reshape(paths, steps, 2)
    normal = np.sqrt(-2 * np.log(1 - numbers[..., 0])) * np.cos(2 * np.pi * numbers[..., 1])
    price = 100 * np.exp(np.cumsum(0.001 + 0.05 * normal, axis=1))
    payoff = np.maximum(price.mean(1) - 98, 0)
    np.testing.assert_allclose(sums, [payoff.sum(), (payoff**2).sum()], rtol=1e-4)


def call_prices(spot: np.ndarray, strike: np.ndarray, years: np.ndarray, rate: float, volatility: float) -> np.ndarray:
    below = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    return spot * below(d1) - strike * np.exp(-rate * years) * below(d1 - deviation)


def test_black_scholes(run: Runner, random: np.random.Generator) -> None:
    spot, strike = (50 + 100 * random.random((2, 45))).astype(np.float32)
    years, prices = (0.1 + random.random(45)).astype(np.float32), np.zeros((45, 2), np.float32)
    run(kernel("chance.cu", "black_scholes")[2, 32], spot, strike, years, prices, 0.03, 0.3, 45)
    call = call_prices(*(x.astype(np.float64) for x in (spot, strike, years)), 0.03, 0.3)
    np.testing.assert_allclose(prices[:, 0], call, rtol=1e-4, atol=2e-4)
    np.testing.assert_allclose(prices[:, 1], call - spot + strike * np.exp(-0.03 * years), rtol=1e-4, atol=2e-4)


def test_black_scholes_in_python(run: Runner, random: np.random.Generator) -> None:
    spot, strike = 50 + 100 * random.random((2, 33))
    years, call = 0.1 + random.random(33), np.zeros(33)
    run(black_scholes_python[2, 20], spot, strike, years, call, 0.03, 0.3)
    np.testing.assert_allclose(call, call_prices(spot, strike, years, 0.03, 0.3), rtol=1e-11, atol=1e-12)


def walked(states: list[int], steps: int) -> list[list[int]]:
    """The states after each step of each walker."""
    rows = []
    for state in states:
        row = []
        for _ in range(steps):
            state ^= state << 13 & 2**64 - 1
            state ^= state >> 7
            state ^= state << 17 & 2**64 - 1
            row.append(state)
        rows.append(row)
    return rows


def test_walks(run: Runner, random: np.random.Generator) -> None:
    states = random.integers(1, 2**64, 40, np.uint64)
    rows = walked(states.tolist(), 9)
    places = np.zeros(40, np.int32)
    bound = kernel("chance.cu", "walk")[2, 32]
    run(bound, states, places, 4, 40)
    run(bound, states, places, 5, 40)
    assert states.tolist() == [row[-1] for row in rows]
    assert places.tolist() == [sum((1, -1, 1000, -1000)[state >> 62] for state in row) for row in rows]


def test_walks_in_python(run: Runner, random: np.random.Generator) -> None:
    states = random.integers(1, 2**64, 35, np.uint64)
    rows = walked(states.tolist(), 6)
    places = np.zeros(35, np.int32)
    run(walk_python[2, 32], states, places, 6)
    assert states.tolist() == [row[-1] for row in rows]
    assert places.tolist() == [sum(1 if state >> 63 else -1 for state in row) for row in rows]
