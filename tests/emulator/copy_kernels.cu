// Asynchronous copies as people write them: with inline assembly, cooperative groups, libcu++ and the pipeline primitives.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

// Two stages of 16-byte copies; what lies beyond n elements is filled with zeros.
extern "C" __global__ void double_buffered(const float *a, float *out, int tiles, int n) {
    __shared__ __align__(16) float stage[2][128];
    auto fetch = [&](int tile) {
        int first = tile * 128 + threadIdx.x * 4;
        unsigned target = __cvta_generic_to_shared(&stage[tile % 2][threadIdx.x * 4]);
        int bytes = max(0, min(16, (n - first) * 4));
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(target), "l"(a + first), "r"(bytes));
        asm volatile("cp.async.commit_group;");
    };
    fetch(0);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) fetch(tile + 1);
        else asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        for (int i = threadIdx.x; i < 128; i += blockDim.x) out[tile * 128 + i] = stage[tile % 2][127 - i];
        __syncthreads();
    }
    asm volatile("cp.async.wait_all;");
}

extern "C" __global__ void with_cooperative_groups(const float *a, float *out) {
    __shared__ float parts[2][256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, parts[0], a, sizeof(float) * 256);
    cg::memcpy_async(block, parts[1], a + 256, sizeof(float) * 256);
    cg::wait_prior<1>(block);
    out[threadIdx.x] = parts[0][blockDim.x - 1 - threadIdx.x];
    cg::wait(block);
    out[blockDim.x + threadIdx.x] = parts[1][blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void with_a_pipeline(const float4 *a, float4 *out) {
    __shared__ float4 parts[2][64];
    auto pipe = cuda::make_pipeline();
    for (int i = 0; i < 2; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&parts[i][threadIdx.x], a + 64 * i + threadIdx.x, sizeof(float4), pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    out[threadIdx.x] = parts[0][threadIdx.x];
    pipe.consumer_release();
    pipe.consumer_wait();
    out[64 + threadIdx.x] = parts[1][threadIdx.x];
    pipe.consumer_release();
}

extern "C" __global__ void with_primitives(const uint4 *a, uint4 *out) {
    __shared__ uint4 part[64];
    __pipeline_memcpy_async(&part[threadIdx.x], a + threadIdx.x, 16, threadIdx.x % 17);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = part[threadIdx.x];
}

// C = A B, 64 x 64 tiles of halves in two stages of asynchronous copies, products by mma.
extern "C" __global__ void copying_gemm(const __half *a, const __half *b, float *c, int n) {
    __shared__ __align__(16) __half left[2][64][24], right[2][16][72];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, member = lane % 4;
    int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[8][4] = {};
    auto fetch = [&](int step) {
        int row = threadIdx.x / 2, half = threadIdx.x % 2 * 8;
        __pipeline_memcpy_async(&left[step % 2][row][half], a + (row0 + row) * n + step * 16 + half, 16);
        row = threadIdx.x / 8, half = threadIdx.x % 8 * 8;
        __pipeline_memcpy_async(&right[step % 2][row][half], b + (step * 16 + row) * n + column0 + half, 16);
        __pipeline_commit();
    };
    fetch(0);
    for (int step = 0; step < n / 16; step++) {
        if (step + 1 < n / 16) fetch(step + 1);
        __pipeline_wait_prior(step + 1 < n / 16 ? 1 : 0);
        __syncthreads();
        unsigned fa[4], fb[2];
        unsigned where = __cvta_generic_to_shared(&left[step % 2][warp * 16 + lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(where));
        for (int j = 0; j < 8; j++) {
            where = __cvta_generic_to_shared(&right[step % 2][lane % 16][j * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                         : "=r"(fb[0]), "=r"(fb[1]) : "r"(where));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};" : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                         : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 4; i++)
            c[(row0 + warp * 16 + group + i / 2 * 8) * n + column0 + j * 8 + member * 2 + i % 2] = sum[j][i];
}

// Barriers in shared memory: a copy that arrives at one, and tokens of its phases.
extern "C" __global__ void with_a_barrier(const float *a, float *out) {
    __shared__ __align__(16) float part[512];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    for (int i = threadIdx.x * 4; i < 512; i += blockDim.x * 4)
        cuda::memcpy_async(&part[i], a + i, cuda::aligned_size_t<16>(16), barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < 512; i += blockDim.x) out[i] = part[511 - i];
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < 512; i += blockDim.x) part[i] = out[i] + 1;
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < 512; i += blockDim.x) out[i] = part[511 - i];
}

// A pipeline of the whole block, two stages deep.
extern "C" __global__ void with_a_shared_pipeline(const float *a, float *out, int tiles) {
    __shared__ __align__(16) float stage[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int tile = 0, fetched = 0; tile < tiles; tile++) {
        for (; fetched < tiles && fetched < tile + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[fetched % 2], a + 128 * fetched, sizeof(float) * 128, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        for (int i = threadIdx.x; i < 128; i += blockDim.x) out[tile * 128 + i] = stage[tile % 2][127 - i];
        pipe.consumer_release();
    }
}

// The first warp produces, the others consume; neither meets the other at a barrier of the block.
extern "C" __global__ void producer_and_consumers(const float *a, float *out, int tiles) {
    __shared__ float stage[2][32];
    __shared__ cuda::barrier<cuda::thread_scope_block> full[2], empty[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, consumers = blockDim.x / 32 - 1;
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 32);
        init(&empty[threadIdx.x], 32 * consumers);
    }
    __syncthreads();
    for (int tile = 0; tile < tiles; tile++) {
        int s = tile % 2, phase = tile / 2 % 2;
        if (warp == 0) {
            empty[s].wait_parity(!phase);
            stage[s][lane] = a[tile * 32 + lane];
            full[s].arrive();
        } else {
            full[s].wait_parity(phase);
            if (tile % consumers == warp - 1) out[tile * 32 + lane] = 2 * stage[s][31 - lane];
            empty[s].arrive();
        }
    }
}
