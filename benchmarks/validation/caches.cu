// Latencies by pointer chase, and the data stage of shared memory. For strides through L1 see strides.cu.

// Cell from[i] points at cell to[i].
extern "C" __global__ void link(void **cells, const int *from, const int *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        cells[from[i]] = cells + to[i];
}

// Follow pointers; the instruction that loads the next one needs this one.
extern "C" __global__ void chase(void **cells, void **out, int steps)
{
    void *cell = cells;
    for (int i = 0; i < steps; i += 32)
#pragma unroll
        for (int j = 0; j < 32; j++)
            asm volatile("ld.global.b64 %0, [%0];" : "+l"(cell));
    *out = cell;
}

// The same in shared memory, where each of 32 words has the address of the next one.
extern "C" __global__ void chase_shared(unsigned *out, int steps)
{
    __shared__ unsigned words[32];
    unsigned first = __cvta_generic_to_shared(words);
    words[threadIdx.x] = first + 4 * ((threadIdx.x + 1) % 32);
    __syncthreads();
    unsigned word = first;
    for (int i = 0; i < steps; i += 32)
#pragma unroll
        for (int j = 0; j < 32; j++)
            asm volatile("ld.shared.b32 %0, [%0];" : "+r"(word));
    *out = word;
}

// Threads store to neighboring elements of shared memory, again and again.
template <typename T> __global__ void store_shared(T *out, int stores)
{
    __shared__ T elements[1024];
    T value = T();
    for (int i = 0; i < stores; i += 16)
#pragma unroll
        for (int j = 0; j < 16; j++) {
            elements[threadIdx.x] = value;
            asm volatile("" ::: "memory");  // the next store does not replace this one
        }
    out[threadIdx.x] = elements[threadIdx.x];
}

// Lanes load words that are `stride` apart, again and again: at an even stride several meet in a bank.
extern "C" __global__ void load_strided(float *out, int stride, int loads)
{
    __shared__ float words[1024];
    words[threadIdx.x] = 0;
    __syncthreads();
    const float *mine = &words[threadIdx.x * stride % 1024];
    float sum = 0;
    for (int i = 0; i < loads; i += 16)
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float value;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"((unsigned)__cvta_generic_to_shared(mine)));
            sum += value;
        }
    out[threadIdx.x] = sum;
}

// Atomic additions: everybody to one word, or each thread to its own.
extern "C" __global__ void add_to_one(int *words, int adds)
{
    for (int i = 0; i < adds; i++)
        atomicAdd(&words[0], 1);
}

extern "C" __global__ void add_to_own(int *words, int adds)
{
    for (int i = 0; i < adds; i++)
        atomicAdd(&words[blockIdx.x * blockDim.x + threadIdx.x], 1);
}
