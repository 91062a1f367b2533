// Single requests and simple streams of them, as the sources of the expected counters describe them.

// Sums of two arrays, read from an offset on.
extern "C" __global__ void read_offset(const float *a, const float *b, float *c, int n, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n)
        c[i] = a[k] + b[k];
}

// Sums of two arrays, written from an offset on.
extern "C" __global__ void write_offset(const float *a, const float *b, float *c, int n, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n)
        c[k] = a[i] + b[i];
}

// Lanes `first` to `last` of one warp load elements that are `stride` apart.
template <typename T> __global__ void load(const T *x, T *y, int stride, int offset, int first, int last)
{
    int i = threadIdx.x;
    if (first <= i && i < last)
        y[i] = x[i * stride + offset];
}

// Lanes load 16 bytes of shared memory each: the first ones of `lanes_together` lanes the same, `stride` float4 apart.
extern "C" __global__ void load_shared(float4 *out, int stride, int lanes_together)
{
    __shared__ float4 tile[256];
    for (int i = threadIdx.x; i < 256; i += 32)
        tile[i] = make_float4(i, i, i, i);
    __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x / lanes_together * stride];
}

// Exchanges by one warp: at 32 neighboring words, at 4 of them, at one, or at one of shared memory.
extern "C" __global__ void exchange(int *x, int *out, int different)
{
    out[threadIdx.x] = atomicExch(&x[threadIdx.x % different], 1);
}

extern "C" __global__ void exchange_shared(int *out)
{
    __shared__ int word;
    word = 0;
    __syncwarp();
    out[threadIdx.x] = atomicExch(&word, 1);
}

// A block of 128 threads sums its part of x where it lies: halves first, then the first warp the rest.
extern "C" __global__ void reduce_in_place(int *x, int *sums)
{
    int *part = x + blockIdx.x * 128;
    int i = threadIdx.x;
    if (i < 64)
        part[i] += part[i + 64];
    __syncthreads();
    if (i < 32) {
        volatile int *v = part;
        for (int step = 32; step > 0; step /= 2) {
            v[i] += v[i + step];
            __syncwarp();
        }
    }
    if (i == 0)
        sums[blockIdx.x] = part[0];
}

// Two values by the parity of the thread, of the warp, and with two opposite conditions.
extern "C" __global__ void by_thread(float *c)
{
    float a = 0, b = 0;
    if (threadIdx.x % 2 == 0)
        a = 100;
    else
        b = 200;
    c[threadIdx.x] = a + b;
}

extern "C" __global__ void by_warp(float *c)
{
    float a = 0, b = 0;
    if (threadIdx.x / 32 % 2 == 0)
        a = 100;
    else
        b = 200;
    c[threadIdx.x] = a + b;
}

extern "C" __global__ void by_two_conditions(float *c)
{
    float a = 0, b = 0;
    bool even = threadIdx.x % 2 == 0;
    if (even)
        a = 100;
    if (!even)
        b = 200;
    c[threadIdx.x] = a + b;
}

// Neighbors are added in global memory; either every (2 step)-th thread works or the first ones do.
template <bool FIRST_ONES> __global__ void reduce_neighbors(int *x, int *sums)
{
    int *part = x + blockIdx.x * blockDim.x;
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (FIRST_ONES) {
            int i = 2 * step * threadIdx.x;
            if (i < blockDim.x)
                part[i] += part[i + step];
        } else if (threadIdx.x % (2 * step) == 0)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}
