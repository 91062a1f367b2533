// Statistics and learning: means of clusters, neighbors, softmax, layer norms.

#include <math.h>

// Assign each point to its nearest center and add it to that cluster's sums, first in shared memory.
template <int DIMENSIONS>
__global__ void assign_points(const float* points, const float* centers, int* label, float* sums, int* counts, int n, int k) {
    extern __shared__ float mine[];  // k * DIMENSIONS sums, then k counts
    int* my_counts = reinterpret_cast<int*>(mine + k * DIMENSIONS);
    for (int i = threadIdx.x; i < k * (DIMENSIONS + 1); i += blockDim.x) mine[i] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float best = INFINITY;
        int where = 0;
        for (int c = 0; c < k; c++) {
            float distance = 0;
            for (int d = 0; d < DIMENSIONS; d++) {
                float away = points[d * n + i] - centers[c * DIMENSIONS + d];
                distance += away * away;
            }
            if (distance < best) { best = distance; where = c; }
        }
        label[i] = where;
        for (int d = 0; d < DIMENSIONS; d++) atomicAdd(&mine[where * DIMENSIONS + d], points[d * n + i]);
        atomicAdd(&my_counts[where], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < k * DIMENSIONS; i += blockDim.x) atomicAdd(&sums[i], mine[i]);
    for (int c = threadIdx.x; c < k; c += blockDim.x) atomicAdd(&counts[c], my_counts[c]);
}

// The K nearest of all points, a query a thread: a sorted list kept in registers by insertion.
template <int K>
__global__ void nearest_neighbors(const float2* points, int n, const float2* queries, int count, int* found) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= count) return;
    float distance[K];
    int who[K];
#pragma unroll
    for (int k = 0; k < K; k++) { distance[k] = INFINITY; who[k] = -1; }
    for (int i = 0; i < n; i++) {
        float dx = points[i].x - queries[q].x, dy = points[i].y - queries[q].y, d = dx * dx + dy * dy;
        int me = i;
#pragma unroll
        for (int k = 0; k < K; k++)
            if (d < distance[k]) {
                float other = distance[k]; distance[k] = d; d = other;
                int place = who[k]; who[k] = me; me = place;
            }
    }
    for (int k = 0; k < K; k++) found[q * K + k] = who[k];
}

// Softmax over rows, a warp a row, maximum and sum found in one sweep.
extern "C" __global__ void softmax_online(const float* in, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.x / 32 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float top = -INFINITY, sum = 0;
    for (int i = lane; i < width; i += 32) {
        float value = in[row * width + i], before = top;
        top = fmaxf(top, value);
        sum = sum * __expf(before - top) + __expf(value - top);
    }
    for (int step = 16; step; step /= 2) {
        float other_top = __shfl_xor_sync(~0u, top, step), other_sum = __shfl_xor_sync(~0u, sum, step), both = fmaxf(top, other_top);
        sum = (top == both ? sum : sum * __expf(top - both)) + (other_top == both ? other_sum : other_sum * __expf(other_top - both));
        top = both;
    }
    for (int i = lane; i < width; i += 32) out[row * width + i] = __expf(in[row * width + i] - top) / sum;
}

// Layer norm by Welford's update and its merge across lanes; a block a row.
extern "C" __global__ void layer_norm(const float* in, const float* gain, float* out, int width, float epsilon) {
    __shared__ float3 parts[32];
    const float* row = in + blockIdx.x * width;
    float mean = 0, spread = 0, count = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        count += 1;
        float away = row[i] - mean;
        mean += away / count;
        spread += away * (row[i] - mean);
    }
    auto merge = [&](float mean2, float spread2, float count2) {
        float both = count + count2;
        if (both == 0) return;
        float away = mean2 - mean;
        mean += away * count2 / both;
        spread += spread2 + away * away * count * count2 / both;
        count = both;
    };
    for (int step = 16; step; step /= 2)
        merge(__shfl_down_sync(~0u, mean, step), __shfl_down_sync(~0u, spread, step), __shfl_down_sync(~0u, count, step));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = make_float3(mean, spread, count);
    __syncthreads();
    mean = spread = count = 0;
    for (int w = 0; w < blockDim.x / 32; w++) merge(parts[w].x, parts[w].y, parts[w].z);
    float scale = rsqrtf(spread / count + epsilon);
    for (int i = threadIdx.x; i < width; i += blockDim.x) out[blockIdx.x * width + i] = (row[i] - mean) * scale * gain[i];
}
