// Cooperative groups within a block.

#include <cooperative_groups.h>
#include <math.h>

namespace cg = cooperative_groups;

// Softmax over rows, a warp a row, maximum and sum found in one sweep.
extern "C" __global__ void softmax_online(const float* in, float* out, int rows, int width) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= rows) return;
    float top = -INFINITY, sum = 0;
    for (int i = warp.thread_rank(); i < width; i += 32) {
        float value = in[row * width + i], before = top;
        top = fmaxf(top, value);
        sum = sum * __expf(before - top) + __expf(value - top);
    }
    for (int step = 16; step; step /= 2) {
        float other_top = warp.shfl_xor(top, step), other_sum = warp.shfl_xor(sum, step), both = fmaxf(top, other_top);
        sum = (top == both ? sum : sum * __expf(top - both)) + (other_top == both ? other_sum : other_sum * __expf(other_top - both));
        top = both;
    }
    for (int i = warp.thread_rank(); i < width; i += 32) out[row * width + i] = __expf(in[row * width + i] - top) / sum;
}

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
