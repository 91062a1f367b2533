// reduction: a block adds its elements in a tree. Which threads work at each step decides how many warps stay busy.

#define MAX_BLOCK 1024
#define WARP 32
#define ALL_LANES 0xFFFFFFFF

// Every (2 step)-th thread adds its neighbor `step` further on.
extern "C" __global__ void interleaved(const float *x, float *partial, int n)
{
    __shared__ float shared[MAX_BLOCK];
    int thread = threadIdx.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[thread] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (thread % (2 * step) == 0)
            shared[thread] += shared[thread + step];
        __syncthreads();
    }
    if (thread == 0)
        partial[blockIdx.x] = shared[0];
}

// The first `step` threads add the next `step`.
extern "C" __global__ void sequential(const float *x, float *partial, int n)
{
    __shared__ float shared[MAX_BLOCK];
    int thread = threadIdx.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[thread] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (thread < step)
            shared[thread] += shared[thread + step];
        __syncthreads();
    }
    if (thread == 0)
        partial[blockIdx.x] = shared[0];
}

// Sum over the lanes of a warp, in lane 0.
__device__ float warp_sum(float value)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_down_sync(ALL_LANES, value, step);
    return value;
}

// Each warp sums by shuffles, then the first warp sums the warps' sums.
extern "C" __global__ void shuffle(const float *x, float *partial, int n)
{
    __shared__ float shared[WARP];
    int lane = threadIdx.x % WARP;
    int warp = threadIdx.x / WARP;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = warp_sum(i < n ? x[i] : 0.0f);
    if (lane == 0)
        shared[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_sum(lane < blockDim.x / WARP ? shared[lane] : 0.0f);
        if (lane == 0)
            partial[blockIdx.x] = value;
    }
}
