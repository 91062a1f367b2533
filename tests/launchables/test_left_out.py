"""What one emulated GPU does not have, asked for in CUDA C++: refused by name, with the reader's line and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpulab
from gpulab.errors import KernelFault, UnsupportedInstruction

GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
CLUSTER = GROUPS + (
    'extern "C" __global__ void clusters(int *x) {\n'
    "    cg::cluster_group cluster = cg::this_cluster();\n"
    "    x[threadIdx.x] = 1;\n"
    "    cluster.sync();\n"
    "}\n"
)
MULTI_GRID = GROUPS + (
    'extern "C" __global__ void grids(int *x) {\n'
    "    x[threadIdx.x] = 1;\n"
    "    auto all = cg::this_multi_grid();\n"
    "    all.sync();\n"
    "}\n"
)
FIXED = (
    "\n"
    'extern "C" __global__ void __cluster_dims__({}, 1, 1) fixed(int *x) {{\n'
    "    x[threadIdx.x + blockIdx.x * blockDim.x] = blockIdx.x + 1;\n"
    "}}\n"
)


def refusal(source: str, name: str, **more: object) -> str:
    gpulab.use("H100")
    try:
        with pytest.raises(UnsupportedInstruction) as caught:
            gpulab.RawKernel(source, name, **more)[2, 32](np.zeros(64, np.int32))
    finally:
        gpulab.use("A100")
    return str(caught.value)


def test_a_barrier_of_a_cluster() -> None:
    message = refusal(CLUSTER, "clusters")
    assert "(clusters.cu, line 6): the emulator does not support 'barrier.cluster.arrive'" in message
    assert "needs clusters of blocks" in message
    assert "Exchange data through global memory" in message


def test_clusters_of_a_fixed_size() -> None:
    message = refusal(FIXED.format(2), "fixed")
    assert "(fixed.cu, line 2): '.reqnctapercluster 2, 1, 1': what __cluster_dims__ says." in message
    assert "Exchange data through global memory" in message


def test_a_cluster_of_one_block_is_none() -> None:
    x = np.zeros(64, np.int32)
    gpulab.use("H100")
    try:
        gpulab.RawKernel(FIXED.format(1), "fixed")[2, 32](x)
    finally:
        gpulab.use("A100")
    assert x.tolist() == [1] * 32 + [2] * 32


@pytest.mark.parametrize(("options", "line"), [((), 6), (("-rdc=true",), 5)])
def test_groups_over_several_gpus(options: tuple[str, ...], line: int) -> None:
    """Without relocatable code the header's functions trap; with it they call what only the driver has."""
    message = refusal(MULTI_GRID, "grids", options=options)
    assert f"(grids.cu, line {line}): 'cooperative_groups::this_multi_grid'" in message
    assert "one GPU is" in message
    assert "Use cooperative_groups::this_grid() in a cooperative launch" in message


def test_an_assertion_tells_the_name_of_the_readers_file(tmp_path: Path) -> None:
    file = tmp_path / "steps.cu"
    file.write_text(
        '#include <assert.h>\nextern "C" __global__ void step(int *x) {\n\n    assert(x[threadIdx.x] < 5);\n}\n'
    )
    for kernel, name in (
        (gpulab.RawKernel(file.read_text(), "step"), "step.cu"),
        (gpulab.RawKernel.from_file(file, "step"), str(file)),
    ):
        with pytest.raises(KernelFault) as caught:
            kernel[1, 32](np.arange(32, dtype=np.int32))
        assert f"the assertion 'x[threadIdx.x] < 5' failed ({name}, line 4)." in str(caught.value)
        assert caught.value.fault.thread == (5, 0, 0)
