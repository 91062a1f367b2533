"""What cooperative groups of a block compute, against NumPy."""

from __future__ import annotations

import numpy as np

import gpulab

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int *in, int *out) {
    __shared__ cg::block_tile_memory<128> scratch;
    __shared__ int shared[128];
    int i = threadIdx.x, x = in[i], place = i;
    auto put = [&](int value) { out[place] = value; place += 128; };
    auto block = cg::this_thread_block(scratch);
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(block);
    auto two_warps = cg::tiled_partition<64>(block);
    put(cg::reduce(eight, x, cg::plus<int>()));
    put(cg::reduce(warp, x, cg::greater<int>()));
    put(cg::reduce(two_warps, x, cg::plus<int>()));
    put(cg::inclusive_scan(warp, x));
    put(cg::exclusive_scan(warp, x));
    put(cg::reduce(cg::labeled_partition(warp, x % 5), x, cg::plus<int>()));
    put(cg::binary_partition(warp, x & 1).size());
    put(__popc(warp.match_any(x % 4)));
    put(eight.shfl_xor(x, 1) * 10 + eight.any(x > 90) + eight.meta_group_rank() * 1000);
    int few = -1;
    if (x % 3 == 0) few = cg::coalesced_threads().size();
    put(few);
    if (i & 1) { shared[i] = x; block.sync(); put(shared[i ^ 1]); }
    else { shared[i] = x + 1; block.sync(); put(shared[i ^ 1]); }
    block.sync();
    shared[i] = x;
    two_warps.sync();
    put(shared[i ^ 63]);
}
"""


def test_groups_of_a_block() -> None:
    x = np.random.default_rng(3).integers(0, 97, 128).astype(np.int32)
    out = np.zeros((12, 128), np.int32)
    gpulab.RawKernel(SOURCE, "groups", options=("-std=c++17",))((1,), (128,), (x, out))
    thread, warps, eights = np.arange(128), x.reshape(4, 32), x.reshape(16, 8)

    def alike(key: np.ndarray, value: np.ndarray) -> list[int]:
        """For each lane the sum of a value over the lanes of its warp with the same key."""
        return [int(value[w][key[w] == key[w, lane]].sum()) for w in range(4) for lane in range(32)]

    ones = np.ones_like(warps)
    expected = [
        np.repeat(eights.sum(1), 8),
        np.repeat(warps.max(1), 32),
        np.repeat(x.reshape(2, 64).sum(1), 64),
        np.cumsum(warps, 1).ravel(),
        (np.cumsum(warps, 1) - warps).ravel(),
        alike(warps % 5, warps),
        alike(warps % 2, ones),
        alike(warps % 4, ones),
        x[thread ^ 1] * 10 + np.repeat((eights > 90).any(1), 8) + thread // 8 * 1000,
        np.where(x % 3 == 0, alike(warps % 3 == 0, ones), -1),
        x[thread ^ 1] + thread % 2,
        x[thread ^ 63],
    ]
    for row, (found, wanted) in enumerate(zip(out, expected, strict=True)):
        assert found.tolist() == np.asarray(wanted).tolist(), row
