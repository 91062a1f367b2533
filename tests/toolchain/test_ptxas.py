"""What the assembler says: registers, spills, shared memory, SASS; and clear reasons where it says nothing."""

from __future__ import annotations

import pytest

from gpulab.errors import CompileError
from gpulab.toolchain import assemble, locate, nvrtc

SHARED = """
extern "C" __global__ void first(float* x) { x[0] = 1; }
extern "C" __global__ void tile(float* x) {
    __shared__ float rows[33][32];
    rows[threadIdx.x][threadIdx.y] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = rows[threadIdx.y][threadIdx.x];
}
extern "C" __global__ void many(float* x) {
    float v[40];
    for (int i = 0; i < 40; ++i) v[i] = x[i * blockDim.x];
    for (int r = 0; r < 3; ++r) for (int i = 0; i < 40; ++i) v[i] = v[i] * v[(i * 7 + 3) % 40] + 1;
    for (int i = 0; i < 40; ++i) x[i * blockDim.x] = v[i];
}
"""


def test_resources_are_those_of_the_kernel_asked_for() -> None:
    tile, first = nvrtc.compile_kernel(SHARED, "tile"), nvrtc.compile_kernel(SHARED, "first")
    assert tile.assembled.static_shared_bytes == 33 * 32 * 4
    assert first.assembled.static_shared_bytes == 0
    assert 0 < first.assembled.registers_per_thread <= tile.assembled.registers_per_thread < 64


def test_a_register_limit_makes_spills() -> None:
    free = nvrtc.compile_kernel(SHARED, "many")
    limited = nvrtc.compile_kernel(SHARED, "many", ("--maxrregcount=24",))
    assert free.assembled.registers_per_thread > 24
    assert free.assembled.spill_store_bytes == 0
    assert limited.assembled.registers_per_thread <= 24
    assert limited.assembled.spill_store_bytes > 0
    assert limited.assembled.spill_load_bytes > 0
    assert limited.assembled.stack_bytes >= limited.assembled.spill_store_bytes


def test_sass_has_the_users_lines() -> None:
    assembled = nvrtc.compile_kernel(SHARED, "tile").assembled
    assert "BAR.SYNC" in assembled.sass
    assert 'tile.cu", line 6' in assembled.sass


def test_sass_is_that_of_the_kernel_asked_for() -> None:
    first = nvrtc.compile_kernel(SHARED, "first").assembled.sass
    assert "STG" in first and ".text.first" in first
    assert "BAR.SYNC" not in first and ".text.tile" not in first


def test_old_gpus_have_numbers_but_a_reason_instead_of_sass() -> None:
    assembled = nvrtc.compile_kernel(SHARED, "tile", (), (7, 0)).assembled
    assert assembled.registers_per_thread > 0
    assert assembled.sass is None
    assert "7.0" in assembled.sass_reason


def test_refused_ptx_is_shown_with_its_line() -> None:
    text = nvrtc.compile_kernel(SHARED, "first").text
    broken = text.replace("st.global", "st.globus")
    number = next(number for number, line in enumerate(broken.splitlines(), 1) if "st.globus" in line)
    with pytest.raises(CompileError, match=rf"line {number};(.|\n)* {number} \| st.globus"):
        assemble(broken, (8, 0))


def test_without_the_assembler_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "find_tool", lambda name: None)
    assembled = assemble("whatever", (8, 0))
    assert assembled.registers_per_thread is None
    assert "pip install nvidia-cuda-nvcc-cu12" in assembled.reason
    assert assembled.sass is None
    assert assembled.sass_reason == assembled.reason
