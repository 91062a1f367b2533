"""Occupancy against NVIDIA's own ``cuda_occupancy.h``, which is compiled for the device and run on the emulated GPU."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.gpus import gpu
from gpulab.models.occupancy import occupancy

# One representative of each capability.
NAMES = ["V100", "T4", "A100", "RTX 3090", "AGX Orin", "RTX 4090", "H100", "B200", "RTX 5090"]
KEYS = ("warps", "registers", "shared", "blocks", "barriers")
SOURCE = r"""
#include <cuda_occupancy.h>

// device: major, minor, threads of an SM, its shared memory, what a block may have of it, and what is reserved.
// asked: threads, registers, shared bytes, barriers. found: error, blocks, and the limits of KEYS.
extern "C" __global__ void ask(const int *device, const int *asked, int *found, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    cudaOccDeviceProp gpu;
    gpu.computeMajor = device[0];
    gpu.computeMinor = device[1];
    gpu.maxThreadsPerBlock = 1024;
    gpu.maxThreadsPerMultiprocessor = device[2];
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.warpSize = 32;
    gpu.sharedMemPerBlock = 49152;
    gpu.sharedMemPerMultiprocessor = device[3];
    gpu.sharedMemPerBlockOptin = device[4];
    gpu.reservedSharedMemPerBlock = device[5];
    gpu.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = asked[4 * i + 1];
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = asked[4 * i + 2];
    kernel.numBlockBarriers = asked[4 * i + 3];
    cudaOccDeviceState state;
    cudaOccResult result;
    int *out = found + 7 * i;
    out[0] = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, asked[4 * i], asked[4 * i + 2]);
    out[1] = result.activeBlocksPerMultiprocessor;
    out[2] = result.blockLimitWarps;
    out[3] = result.blockLimitRegs;
    out[4] = result.blockLimitSharedMem;
    out[5] = result.blockLimitBlocks;
    out[6] = result.blockLimitBarriers;
}
"""


@pytest.fixture(scope="module")
def header() -> gpulab.RawKernel:
    return gpulab.RawKernel(SOURCE, "ask")


def questions(seed: int, most_shared: int) -> np.ndarray:
    """Threads, registers, shared bytes, barriers: the edges of each, and many at random; some can't be launched."""
    rng = np.random.default_rng(seed)
    edges = np.array(
        [
            (threads, registers, shared, barriers)
            for threads in (1, 32, 33, 96, 1024, 1025)
            for registers in (0, 1, 32, 33, 64, 65, 255)
            for shared in (0, 1, 49_152, 49_153, most_shared, most_shared + 1)
            for barriers in (0, 1, 16)
        ]
    )
    count = 500
    chance = (rng.integers(1, 1060, count), rng.integers(0, 256, count), rng.integers(0, most_shared + 600, count))
    return np.concatenate([edges, np.stack([*chance, rng.integers(0, 17, count)], axis=1)]).astype(np.int32)


@pytest.mark.parametrize("name", NAMES)
def test_the_header_says_the_same(header: gpulab.RawKernel, name: str) -> None:
    spec = gpu(name)
    most = spec.shared_bytes_per_block_optin
    threads = spec.max_warps_per_sm * 32
    reserved = spec.reserved_shared_bytes_per_block
    device = np.array([*spec.compute_capability, threads, spec.shared_bytes_per_sm, most, reserved], np.int32)
    asked = questions(NAMES.index(name), most)
    found = np.zeros((len(asked), 7), np.int32)
    gpulab.use("A100")
    header[-(-len(asked) // 128), 128](device, asked.reshape(-1), found.reshape(-1), len(asked))
    assert not found[:, 0].any()
    for (block, registers, shared, barriers), (_, blocks, *limits) in zip(asked.tolist(), found.tolist(), strict=True):
        ours = occupancy(spec, block=block, registers_per_thread=registers, shared_bytes=shared, barriers=barriers)
        told = f"{name}, {block} threads, {registers} registers, {shared} bytes, {barriers} barriers"
        assert ours.blocks_per_sm == blocks, told
        assert bool(ours.reason) == (blocks == 0), told
        for key, theirs in zip(KEYS, limits, strict=True):
            mine = ours.limits.get(key, spec.max_blocks_per_sm)
            # The header has no limit where a resource is not used, we have what an SM holds.
            assert mine == theirs or (theirs == 2**31 - 1 and mine == spec.max_blocks_per_sm), f"{key}: {told}"
