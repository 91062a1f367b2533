"""Which instructions the modeled time goes to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpulab.gpus import gpu
from gpulab.models.run import KernelRun
from gpulab.models.shares import joined_shares, time_shares
from gpulab.models.timing import TimeEstimate, estimate
from gpulab.models.traffic import Traffic, traffic

BODY = """
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd2];
    fma.rn.f32 %f3, %f1, %f2, %f2;
    fma.rn.f32 %f4, %f3, %f3, %f3;
    st.global.f32 [%rd3], %f4;
    ret;
"""
A100 = gpu("A100")


@pytest.fixture
def run(make_run) -> KernelRun:
    counts = {
        0: {"requests": 1000, "sectors": 32_000, "wavefronts": 1000, "lines": 32_000, "bytes_asked": 128_000},
        1: {"requests": 1000, "sectors": 4000, "wavefronts": 3000, "lines": 1000, "bytes_asked": 128_000},
        4: {"requests": 1000, "sectors": 12_000, "wavefronts": 1000, "lines": 4000, "bytes_asked": 128_000},
    }
    return make_run(BODY, counts, grid=1000)


@pytest.fixture
def moved(run: KernelRun) -> Traffic:
    return traffic(run, A100, run.occupancy(A100))


def only(run: KernelRun, **terms: float) -> TimeEstimate:
    """A time that these terms alone make up."""
    whole = estimate(run, A100)
    return dataclasses.replace(whole, terms={**dict.fromkeys(whole.terms, 0.0), "launch": 9.0, **terms})


def test_they_add_up_to_one(run: KernelRun, moved: Traffic) -> None:
    shares = time_shares(run, A100, moved, estimate(run, A100))
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()


def test_each_term_goes_to_those_that_use_its_resource(run: KernelRun, moved: Traffic) -> None:
    fma = time_shares(run, A100, moved, only(run, fma=1e-3))
    assert fma.tolist() == [0, 0, 0.5, 0.5, 0, 0]
    # By passes of the data stage: 1000, 3000 and 1000.
    assert time_shares(run, A100, moved, only(run, l1=1e-3)).tolist() == [0.2, 0.6, 0, 0, 0.2, 0]
    issue = time_shares(run, A100, moved, only(run, issue=1e-3))
    assert issue == pytest.approx(np.full(6, 1 / 6))


def test_latency_goes_to_what_is_waited_for(run: KernelRun, moved: Traffic) -> None:
    shares = time_shares(run, A100, moved, only(run, latency=1e-3))
    # The first product waits for both loads; the second of them needs more passes, so that it is the last to be there.
    assert shares.argmax() == 1
    assert shares[1] > 0.6 > 0.05 > shares[0]
    assert shares[2] == pytest.approx(shares[3])  # each product is waited for by what uses it


def test_terms_weigh_by_their_third_power(run: KernelRun, moved: Traffic) -> None:
    shares = time_shares(run, A100, moved, only(run, fma=1e-3, l1=2e-3))
    assert shares[2] + shares[3] == pytest.approx(1 / 9)


def test_launches_share_by_their_seconds() -> None:
    joined = joined_shares([np.array([0.25, 0.75]), np.array([1.0])], [3e-3, 1e-3])
    assert joined == pytest.approx([0.1875, 0.5625, 0.25])
