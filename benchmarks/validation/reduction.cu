// reduction: each block sums its part of x. The seven steps of M. Harris' "Optimizing Parallel Reduction in CUDA", and shuffles.
// The number of elements is a multiple of what a block sums.

#define BLOCK 256
#define ALL 0xffffffff

// Every (2 step)-th thread adds its neighbor `step` further on: all warps stay busy to the end, with few lanes each.
extern "C" __global__ void divergent(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    shared[i] = x[blockIdx.x * BLOCK + i];
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        if (i % (2 * step) == 0)
            shared[i] += shared[i + step];
        __syncthreads();
    }
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// The first threads do the same additions; their elements lie in few banks.
extern "C" __global__ void conflicting(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    shared[i] = x[blockIdx.x * BLOCK + i];
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        int j = 2 * step * i;
        if (j < BLOCK)
            shared[j] += shared[j + step];
        __syncthreads();
    }
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// The first half adds the second half, and so on.
template <int LEAST> __device__ void add_halves(float *shared, int i)
{
    for (int step = BLOCK / 2; step >= LEAST; step /= 2) {
        if (i < step)
            shared[i] += shared[i + step];
        __syncthreads();
    }
}

extern "C" __global__ void sequential(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    shared[i] = x[blockIdx.x * BLOCK + i];
    __syncthreads();
    add_halves<1>(shared, i);
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// Half as many blocks: each thread loads two elements and adds them at once.
extern "C" __global__ void added_on_load(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    const float *mine = x + blockIdx.x * BLOCK * 2 + i;
    shared[i] = mine[0] + mine[BLOCK];
    __syncthreads();
    add_halves<1>(shared, i);
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// The last 64 elements are one warp's, which needs no barrier of the block.
__device__ void add_last(volatile float *shared, int i)
{
#pragma unroll
    for (int step = 32; step > 0; step /= 2) {
        float other = shared[i + step];
        __syncwarp();
        shared[i] += other;
        __syncwarp();
    }
}

extern "C" __global__ void last_warp_unrolled(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    const float *mine = x + blockIdx.x * BLOCK * 2 + i;
    shared[i] = mine[0] + mine[BLOCK];
    __syncthreads();
    add_halves<64>(shared, i);
    if (i < 32)
        add_last(shared, i);
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// No loop is left.
__device__ void add_unrolled(float *shared, int i)
{
#pragma unroll
    for (int step = BLOCK / 2; step >= 64; step /= 2) {
        if (i < step)
            shared[i] += shared[i + step];
        __syncthreads();
    }
    if (i < 32)
        add_last(shared, i);
}

extern "C" __global__ void unrolled(const float *x, float *sums)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    const float *mine = x + blockIdx.x * BLOCK * 2 + i;
    shared[i] = mine[0] + mine[BLOCK];
    __syncthreads();
    add_unrolled(shared, i);
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

// What a thread adds in a register, in strides of the grid.
__device__ float added_many(const float *x, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * BLOCK * 2 + threadIdx.x; i < n; i += gridDim.x * BLOCK * 2)
        sum += x[i] + x[i + BLOCK];
    return sum;
}

// Few blocks: each thread adds many elements before the block shares anything.
extern "C" __global__ void many_for_each(const float *x, float *sums, int n)
{
    __shared__ float shared[BLOCK];
    int i = threadIdx.x;
    shared[i] = added_many(x, n);
    __syncthreads();
    add_unrolled(shared, i);
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

__device__ float warp_sum(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(ALL, value, step);
    return value;
}

// Lanes hand their registers on; shared memory holds one sum for each warp.
extern "C" __global__ void shuffled(const float *x, float *sums, int n)
{
    __shared__ float shared[BLOCK / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = warp_sum(added_many(x, n));
    if (lane == 0)
        shared[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < BLOCK / 32 ? shared[lane] : 0.0f);
        if (lane == 0)
            sums[blockIdx.x] = sum;
    }
}
