"""Barriers and pipelines of libcu++, as NVRTC compiles them for capabilities with and without `try_wait`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cuda_harness import launch_on_all, program_of

import gpulab
from gpulab.devices.emulated import EmulatedDevice
from gpulab.errors import KernelFault, UnsupportedInstruction

FILE = "copy_kernels.cu"
_random = np.random.default_rng(14)


@pytest.mark.parametrize("threads", [32, 128])
def test_copies_arrive_at_a_barrier(threads: int) -> None:
    a = _random.random(512).astype(np.float32)
    found, _ = launch_on_all(program_of(FILE, "with_a_barrier"), [a, np.zeros(512, np.float32)], 2, threads)
    # Reversed, one added, reversed again.
    assert np.array_equal(found[1], a + np.float32(1))


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (12, 0)])
@pytest.mark.parametrize("threads", [32, 128])
def test_a_pipeline_of_the_block(threads: int, capability: tuple[int, int]) -> None:
    a = _random.random(5 * 128).astype(np.float32)
    program = program_of(FILE, "with_a_shared_pipeline", capability)
    found, counters = launch_on_all(program, [a, np.zeros_like(a), 5], 1, threads)
    assert np.array_equal(found[1].reshape(5, 128), a.reshape(5, 128)[:, ::-1])
    assert counters.copied_bytes.sum() == 5 * 128 * 4


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_warps_that_produce_and_warps_that_consume(capability: tuple[int, int]) -> None:
    a = _random.random(7 * 32).astype(np.float32)
    program = program_of(FILE, "producer_and_consumers", capability)
    found, _ = launch_on_all(program, [a, np.zeros_like(a), 7], 1, 96)
    assert np.array_equal(found[1].reshape(7, 32), 2 * a.reshape(7, 32)[:, ::-1])


@pytest.mark.parametrize("name", ["A100", "H100"])
def test_a_barrier_for_more_threads_than_arrive_is_a_deadlock(name: str) -> None:
    """libcu++ waits with a growing pause and looks at the clock meanwhile; nothing of that can end the wait."""
    source = (
        '#include <cuda/barrier>\nextern "C" __global__ void wait(int *x) {\n'
        "    __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n"
        "    if (threadIdx.x == 0) init(&bar, blockDim.x + 1);\n    __syncthreads();\n"
        "    bar.arrive_and_wait();\n    x[threadIdx.x] = 1;\n}\n"
    )
    device = EmulatedDevice(gpulab.gpu(name), time_limit_s=20)
    with pytest.raises(KernelFault) as caught:
        device.launch(gpulab.RawKernel(source, "wait")[1, 64], [np.zeros(64, np.int32)])
    assert (caught.value.fault.kind, caught.value.fault.line) == ("deadlock", 6)
    where = "warps 0-1 of block (0, 0, 0) at wait.cu, line 6 (for a phase of a barrier in shared memory)"
    assert where in str(caught.value)


def test_bulk_copies_are_refused_by_name() -> None:
    """For capability 9.0 libcu++ turns aligned copies into those of the tensor memory accelerator."""
    with pytest.raises(UnsupportedInstruction, match=r"cp\.async\.bulk"):
        program_of(FILE, "with_a_barrier", (9, 0))


@pytest.mark.parametrize(
    ("name", "block", "size", "rest"),
    [
        ("with_a_barrier", 128, 512, ()),
        ("with_a_shared_pipeline", 128, 640, (np.int32(5),)),
        ("producer_and_consumers", 96, 224, (np.int32(7),)),
        ("double_buffered", 32, 640, (np.int32(5), np.int32(640))),
    ],
)
def test_the_check_has_nothing_against_them(name: str, block: int, size: int, rest: tuple) -> None:
    """Barriers in shared memory order what is before and behind them, and are used by many threads at once."""
    compiled = gpulab.RawKernel.from_file(Path(__file__).parent / FILE, name)
    arrays = np.zeros(size, np.float32), np.zeros(size, np.float32)
    report = gpulab.check(compiled[1, block], *arrays, *rest, gpu="A100")
    assert report.ok, report.faults
