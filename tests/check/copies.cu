// Asynchronous copies, and barriers in shared memory.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

extern "C" __global__ void two_stages(const float* x, float* y) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&s[0][t], &x[t], 4);
    __pipeline_commit();
    for (int k = 0; k < 4; ++k) {
        if (k < 3) __pipeline_memcpy_async(&s[(k + 1) & 1][t], &x[t + 64 * (k + 1)], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[k & 1][63 - t];
        __syncthreads();
    }
    y[t] = sum;
}

extern "C" __global__ void own_copy(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &x[t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[t] = s[t];
}

extern "C" __global__ void no_wait(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &x[t], 4);  // no_wait: copy
    __pipeline_commit();
    __syncthreads();
    y[t] = s[63 - t];  // no_wait: load
}

extern "C" __global__ void no_wait_for_own_copy(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &x[t], 4);  // no_wait_for_own_copy: copy
    __pipeline_commit();
    y[t] = s[t];  // no_wait_for_own_copy: load
}

extern "C" __global__ void wait_behind_barrier(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &x[t], 4);  // wait_behind_barrier: copy
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    y[t] = s[63 - t];  // wait_behind_barrier: load
}

extern "C" __global__ void waits_for_too_few(const float* x, float* y) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        __pipeline_memcpy_async(&s[k][t], &x[t + 64 * k], 4);  // waits_for_too_few: copy
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    y[t] = s[0][63 - t];
    y[t] += s[1][63 - t];  // waits_for_too_few: load
}

extern "C" __global__ void barrier_object(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        s[t] = x[t] + k;
        bar.arrive_and_wait();
        y[t] = s[63 - t];
        bar.arrive_and_wait();
    }
}

extern "C" __global__ void barrier_object_once(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        s[t] = x[t] + k;  // barrier_object_once: store
        bar.arrive_and_wait();
        y[t] = s[63 - t];  // barrier_object_once: load
    }
}

extern "C" __global__ void copied_to_barrier(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    cuda::memcpy_async(cooperative_groups::this_thread_block(), s, x, sizeof s, bar);
    bar.arrive_and_wait();
    y[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void pipeline_object(const float* x, float* y) {
    __shared__ alignas(16) float s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int k = 0; k < 5; ++k) {
        if (k < 4) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[k & 1], x + 64 * k, sizeof s[0], pipe);
            pipe.producer_commit();
        }
        if (k > 0) {
            pipe.consumer_wait();
            sum += s[(k - 1) & 1][63 - threadIdx.x];
            pipe.consumer_release();
        }
    }
    y[threadIdx.x] = sum;
}

extern "C" __global__ void one_lane_arrives(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 2);
    __syncthreads();
    s[t] = x[t];
    __syncwarp();
    if (t % 32 == 0) bar.arrive_and_wait();
    __syncwarp();
    y[t] = s[63 - t];
}

extern "C" __global__ void one_lane_arrives_for_others(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 2);
    __syncthreads();
    s[t] = x[t];  // one_lane_arrives_for_others: store
    if (t % 32 == 0) bar.arrive_and_wait();
    __syncwarp();
    y[t] = s[63 - t];  // one_lane_arrives_for_others: load
}
