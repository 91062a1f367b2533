// Cooperative groups within a block.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Sum of a long array by cooperative groups: tiles of 8, then the block; an even number of items a thread as int2.
extern "C" __global__ void sum_groups(const int2* in, int pairs, long long* total) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    __shared__ long long parts[128];
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < pairs; i += gridDim.x * blockDim.x)
        sum += (long long)in[i].x + in[i].y;
    for (int step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
    if (tile.thread_rank() == 0) parts[block.thread_rank() / 8] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        for (int i = 1; i < blockDim.x / 8; i++) sum += parts[i];
        atomicAdd(reinterpret_cast<unsigned long long*>(total), (unsigned long long)sum);
    }
}
