"""Sampled launches: the chosen blocks, and the extrapolated counters against those of the whole grid."""

import gc
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpulab
from gpulab.emulator import sampling
from gpulab.emulator.sampling import choose, classes
from gpulab.launch import LaunchConfig
from gpulab.profiling import Profile

SGEMM = r"""
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
extern "C" __global__ void blur(const float* x, float* y, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float sum = 0;
    for (int dj = -1; dj <= 1; ++dj)
        for (int di = -1; di <= 1; ++di) {
            int u = i + di, v = j + dj;
            if (u >= 0 && u < w && v >= 0 && v < h) sum += x[v * w + u];
        }
    y[j * w + i] = sum;
}
extern "C" __global__ void look_up(const float* table, const int* index, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = table[index[i]];
}
"""
EXECUTION = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
)
BYTES = ("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")


def both(name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: list, sample: int):
    """The same launch, whole and sampled."""
    kernel = gpulab.RawKernel(SGEMM, name)[grid, block]
    whole = gpulab.profile(kernel, *arguments, gpu="T4")
    return whole, gpulab.profile(kernel, *arguments, gpu="T4", sample_blocks=sample)


def assert_near(sampled: Profile, whole: Profile) -> None:
    for name in EXECUTION:
        assert sampled.metrics[name] == pytest.approx(whole.metrics[name], rel=0.01), name
    for name in BYTES:
        assert sampled.metrics[name] == pytest.approx(whole.metrics[name], rel=0.15), name
    assert sampled.time.seconds == pytest.approx(whole.time.seconds, rel=0.1)


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(1).random(count, np.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(512, 512, 64), (500, 530, 70)])
def test_a_matrix_product(m: int, n: int, k: int) -> None:
    arguments = [noise(m * k), noise(k * n), np.zeros(m * n, np.float32), np.int32(m), np.int32(n), np.int32(k)]
    whole, sampled = both("sgemm", (-(-n // 16), -(-m // 16)), (16, 16), arguments, 64)
    assert_near(sampled, whole)
    assert sampled.notes[-1] == "Incomplete, because only these blocks ran: c."


def test_a_stencil_with_edges() -> None:
    w, h = 1000, 700
    arguments = [noise(w * h), np.zeros(w * h, np.float32), np.int32(w), np.int32(h)]
    whole, sampled = both("blur", (-(-w // 32), -(-h // 8)), (32, 8), arguments, 100)
    assert_near(sampled, whole)


def test_a_table_that_all_blocks_share() -> None:
    # Each block reads the whole table of 512 floats; the sample must not take it for 4,096 tables.
    n = 1 << 20
    index = np.random.default_rng(2).integers(0, 512, n).astype(np.int32)
    arguments = [noise(1 << 16), index, np.zeros(n, np.float32), np.int32(n)]
    whole, sampled = both("look_up", (n // 256,), (256,), arguments, 48)
    assert_near(sampled, whole)
    # 4,096 tables would be 4 % more than the 128 Ki sectors of the indices and the one table of 64.
    read, read_by_all = (each.launches[0].record.counters.distinct_sectors_read for each in (sampled, whole))
    assert read == pytest.approx(read_by_all, rel=0.01)


def test_one_block_stands_for_all() -> None:
    n = 1 << 14
    arguments = [noise(64), np.zeros(n, np.int32), np.zeros(n, np.float32), np.int32(n)]
    whole, sampled = both("look_up", (n // 256,), (256,), arguments, 1)
    assert sampled.metrics["smsp__inst_executed.sum"] == whole.metrics["smsp__inst_executed.sum"]


def test_a_sample_of_all_blocks_is_no_sample() -> None:
    n = 1 << 10
    arguments = [noise(64), np.zeros(n, np.int32), np.zeros(n, np.float32), np.int32(n)]
    _, sampled = both("look_up", (n // 256,), (256,), arguments, 4)
    assert sampled.notes == ()


@given(st.tuples(*[st.integers(1, 40)] * 3), st.integers(1, 200))
def test_a_sample_stands_for_the_grid(grid: tuple[int, int, int], blocks: int) -> None:
    launch = LaunchConfig.of(grid, 32)
    if blocks >= launch.blocks:
        return
    sample = choose(launch, blocks)
    ran = np.concatenate(sample.stretches)
    assert len(set(ran.tolist())) == len(ran) == sample.blocks <= blocks
    assert ran.min() >= 0 and ran.max() < launch.blocks
    assert sum(sample.weights[each] for each in classes(launch, ran).tolist()) == pytest.approx(launch.blocks)


@pytest.mark.parametrize(("grid", "blocks"), [((1000, 1, 1), 48), ((32, 88, 1), 100), ((7, 9, 11), 40)])
def test_blocks_that_share_an_sm_are_part_of_the_sample(grid: tuple[int, int, int], blocks: int) -> None:
    sample = choose(LaunchConfig.of(grid, 32), blocks, apart=40, together=8)
    ran = np.concatenate(sample.stretches)
    assert len(set(ran.tolist())) == len(ran) == sample.blocks == blocks
    assert sample.near is not None and np.diff(sample.near).tolist() == [40] * 7
    assert set(sample.near.tolist()) <= set(ran.tolist()) <= set(range(math.prod(grid)))
    assert sample.middle is sample.stretches[1]


def test_a_small_grid_has_no_blocks_that_share_an_sm() -> None:
    assert choose(LaunchConfig.of(30, 32), 12, apart=40, together=8).near is None


def test_classes_by_hand() -> None:
    launch = LaunchConfig.of((3, 2, 1), 32)
    # x: first, inside, last; y: first, last; z has but one block, which is inside.
    assert classes(launch, np.arange(6)).tolist() == [9, 10, 11, 15, 16, 17]


def test_the_first_the_middle_and_the_last_blocks_run() -> None:
    sample = choose(LaunchConfig.of((64, 64), 32), 30)
    starts = [(int(each[0]), int(each[-1])) for each in sample.stretches[:3]]
    assert starts[0][0] == 0 and starts[2][1] == 4095
    assert starts[1][0] < 32 * 64 + 32 <= starts[1][1]


def test_a_variable_that_is_released_while_a_sample_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel that nobody uses any more gives its variables back whenever garbage is collected.
    source = '__device__ int seen[64]; extern "C" __global__ void k(int* y) { y[blockIdx.x] = atomicAdd(seen, 1); }'
    gone = [gpulab.RawKernel(source, "k")]
    y = np.zeros(64, np.int32)
    gone[0][64, 1](y)
    made = sampling.Touched

    def collecting(allocations: dict[int, object]) -> object:
        found = made(allocations)
        gone.clear()
        gc.collect()
        return found

    monkeypatch.setattr(sampling, "Touched", collecting)
    profile = gpulab.profile(gpulab.RawKernel(source, "k")[64, 1], y, sample_blocks=6)
    assert profile.metrics["launch__grid_size"] == 64
