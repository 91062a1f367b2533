// Kernels that each do one thing wrong; the tests know the lines by their marks.

extern "C" __global__ void no_barrier(const float* x, float* y) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];  // no_barrier: store
    y[t] = tile[63 - t];  // no_barrier: load
}

extern "C" __global__ void loop_without_second_barrier(const float* x, float* y, int steps) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        tile[t] = x[64 * step + t];  // loop: store
        __syncthreads();
        sum += tile[63 - t];  // loop: load
    }
    y[t] = sum;
}

extern "C" __global__ void lockstep(const float* x, float* y) {
    __shared__ volatile float s[32];
    int t = threadIdx.x;
    s[t] = x[t];  // lockstep: store
    y[t] = s[t ^ 1];  // lockstep: load
}

extern "C" __global__ void warp_reduction(const float* x, float* y) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    if (t < 16) {
        s[t] += s[t + 16];  // reduction: 16
        s[t] += s[t + 8];  // reduction: 8
    }
    if (t == 0) y[0] = s[0];
}

extern "C" __global__ void increments(const int* key, int* histogram, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) histogram[key[i]] += 1;  // increments
}

extern "C" __global__ void different_values(int* x) {
    x[threadIdx.x / 2] = threadIdx.x;  // different_values
}

extern "C" __global__ void no_guard(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];  // no_guard
}

extern "C" __global__ void negative(const float* x, float* y) {
    y[threadIdx.x] = x[(int)threadIdx.x - 3];  // negative
}

extern "C" __global__ void misaligned(const char* bytes, int* y) {
    y[threadIdx.x] = *(const int*)(bytes + 4 * threadIdx.x + threadIdx.x % 2);  // misaligned
}

extern "C" __global__ void never_stored(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x];  // never_stored
}

extern "C" __global__ void shared_never_stored(float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 40) s[t] = t;
    __syncthreads();
    y[t] = s[t];  // shared_never_stored
}

extern "C" __global__ void shared_counter_never_zeroed(int* y) {
    __shared__ int counter;
    atomicAdd(&counter, 1);  // never_zeroed
    __syncthreads();
    if (threadIdx.x == 0) y[0] = counter;
}

extern "C" __global__ void local_never_stored(float* y, int n, int at) {
    float own[16];
    for (int k = 0; k < n; ++k) own[k] = k;
    y[threadIdx.x] = own[at];  // local_never_stored
}

extern "C" __global__ void through_a_table(float** arrays, float* y) {
    y[threadIdx.x] = arrays[0][threadIdx.x];  // through_a_table
}

extern "C" __global__ void barrier_for_some(float* y) {
    if (threadIdx.x % 2) __syncthreads();  // barrier_for_some
    y[threadIdx.x] = 1;
}

extern "C" __global__ void wrong_mask(int* y) {
    __syncwarp(0xfffffffe);  // wrong_mask
    y[threadIdx.x] = 1;
}

extern "C" __global__ void endless(volatile int* flag) {
    while (*flag == 0) {  // endless
    }
}

extern "C" __global__ void overflow(float* x, int n) {
    int row = threadIdx.x;
    int index = row * n;  // overflow: product
    x[index] = 1;  // overflow: store
}

extern "C" __global__ void sum_without_barrier(const int* x, int* y) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, x[threadIdx.x]);  // sum: atomic
    y[threadIdx.x] = total;  // sum: load
}

extern "C" __global__ void barrier_of_the_wrong_half(const float* x, float* y) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];  // wrong half: store
    if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    y[t] = s[127 - t];  // wrong half: load
}

extern "C" __global__ void lock_without_fence(int* lock, int* value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        *value += 1;  // lock_without_fence
        atomicExch(lock, 0);
    }
}

extern "C" __global__ void wide(const float4* x, float4* y) {
    __shared__ float4 s[64];
    int t = threadIdx.x;
    s[t] = x[t];  // wide: store
    y[t] = s[63 - t];  // wide: load
}

extern "C" __global__ void fresh_piece(int* out) {
    int* piece = (int*)malloc(16);
    piece[0] = 1;
    out[threadIdx.x] = piece[1];  // fresh_piece
    free(piece);
}

extern "C" __global__ void piece_given_back(int* out) {
    int* piece = (int*)malloc(16);
    piece[0] = 1;
    free(piece);
    out[threadIdx.x] = piece[0];  // piece_given_back
}

extern "C" __global__ void store_after_free(int* out) {
    int* piece = (int*)malloc(16);
    piece[0] = 1;
    out[threadIdx.x] = piece[0];
    free(piece);
    ((volatile int*)piece)[1] = 2;  // store_after_free
}

extern "C" __global__ void beyond_a_piece(int* out) {
    int* piece = (int*)malloc(64);
    for (int i = 0; i < 16; ++i) piece[i] = i;
    piece[16] = out[threadIdx.x];  // beyond_a_piece
    out[threadIdx.x] = piece[15];
    free(piece);
}

extern "C" __global__ void beyond_one_array(const float* x, float* y) {
    __shared__ float first[64];
    __shared__ float second[64];
    int t = threadIdx.x;
    first[t] = x[t];
    second[t] = 2 * x[t];
    __syncthreads();
    y[t] = first[t + 1] + second[63 - t];  // beyond_one_array
}

extern "C" __global__ void before_dynamic_memory(const float* x, float* y) {
    extern __shared__ float dynamic[];
    __shared__ float fixed[64];
    int t = threadIdx.x;
    fixed[t] = x[t];
    __syncthreads();
    dynamic[t - 4] = fixed[63 - t];  // before_dynamic_memory
    y[t] = fixed[t];
}

extern "C" __global__ void pointer_beyond_one_array(const float* x, float* y, int n) {
    __shared__ float first[64];
    __shared__ float second[64];
    int t = threadIdx.x;
    first[t] = x[t];
    second[t] = x[t];
    __syncthreads();
    float sum = 0;
    for (const float* p = first; p < first + n; ++p) sum += *p;  // pointer_beyond_one_array
    y[t] = sum + second[63 - t];
}

extern "C" __global__ void negative_shared(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t - 2];  // negative_shared
}

extern "C" __global__ void into_constant(const float* x, float* y) {
    ((float*)x)[threadIdx.x] = 1;  // into_constant
    y[threadIdx.x] = 1;
}

extern "C" __global__ void sum_of_too_few_lanes(const float* x, float* y) {
    float sum = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);  // too_few_lanes: shuffle
    if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = sum;  // too_few_lanes: store
}

extern "C" __global__ void neighbor_has_returned(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    float next = __shfl_down_sync(0xffffffffu, x[i], 1);  // neighbor_has_returned: shuffle
    y[i] = next - x[i];  // neighbor_has_returned: store
}

extern "C" __global__ void shuffle_in_a_branch(const float* x, float* y) {
    int i = threadIdx.x;
    float v = x[i];
    if (i % 2 == 0) v += __shfl_xor_sync(0x55555555u, v, 1);  // in_a_branch: shuffle
    y[i] = v;  // in_a_branch: store
}

extern "C" __global__ void branch_on_nothing(const int* x, int* y) {
    int i = threadIdx.x;
    if (i < 20) {
        int first = __shfl_sync(0xfffffu, x[i], 24);  // branch_on_nothing: shuffle
        if (first > 3) y[i] = 1;  // branch_on_nothing: branch
    }
}

extern "C" __global__ void place_given_out_again(int* out) {
    int* piece = (int*)malloc(16);
    piece[0] = 1;
    free(piece);
    int* other = (int*)malloc(16);
    other[0] = 2;
    out[threadIdx.x] = ((volatile int*)piece)[0] + other[0];  // place_given_out_again
    free(other);
}

extern "C" __global__ void rows_of_a_warp(const float* x, float* y, int steps) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < steps; ++k) {
        s[t] = x[32 * k + t];  // rows_of_a_warp: store
        __syncthreads();
        sum += s[31 - t];  // rows_of_a_warp: load
    }
    y[t] = sum;
}
