// Kernels in which nothing is wrong, though it may look so.

extern "C" __global__ void barrier(const float* x, float* y) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    y[t] = tile[63 - t];
}

extern "C" __global__ void two_buffers(const float* x, float* y, int steps) {
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        tile[step % 2][t] = x[64 * step + t];
        __syncthreads();
        sum += tile[step % 2][63 - t];
    }
    y[t] = sum;
}

extern "C" __global__ void warp_barriers(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x, lane = t % 32;
    s[t] = x[t];
    __syncwarp();
    for (int half = 16; half > 0; half /= 2) {
        float other = lane < half ? s[t + half] : 0;
        __syncwarp();
        if (lane < half) s[t] += other;
        __syncwarp();
    }
    if (lane == 0) y[t / 32] = s[t];
}

extern "C" __global__ void half_warps(float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    unsigned mask = t < 16 ? 0xffffu : 0xffff0000u;
    s[t] = t;
    if (t < 16) __syncwarp(0xffffu); else __syncwarp(0xffff0000u);
    y[t] = s[t ^ 5] + __shfl_xor_sync(mask, t, 3);
}

extern "C" __global__ void histogram(const int* key, int* result, int n) {
    __shared__ int bins[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&bins[key[i]], 1);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&result[threadIdx.x], bins[threadIdx.x]);
}

extern "C" __global__ void same_value(const int* x, int* found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 2) *found = 1;
}

extern "C" __global__ void early_return(const float* x, float* y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = 0;
    if (t >= n) return;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[63 - t];
}

extern "C" __global__ void greatest(double* most, const double* x) {
    unsigned long long* bits = (unsigned long long*)most;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        double larger = fmax(x[blockIdx.x * blockDim.x + threadIdx.x], __longlong_as_double(assumed));
        old = atomicCAS(bits, assumed, __double_as_longlong(larger));
    } while (assumed != old);
}

extern "C" __global__ void last_block(const float* x, float* partial, unsigned* done, float* total) {
    __shared__ float s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = x[64 * blockIdx.x + t];
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int k = 0; k < 64; ++k) sum += s[k];
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0;
        for (int k = 0; k < gridDim.x; ++k) sum += partial[k];
        total[0] = sum;
    }
}

extern "C" __global__ void relax(const int* from, const int* to, int* distance, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges) atomicMin(&distance[to[e]], distance[from[e]] + 1);
}

extern "C" __global__ void halves_with_barriers_of_their_own(const float* x, float* y) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    y[t] = s[t ^ 63];
}

extern "C" __global__ void lock(int* lock, int* value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *value += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

extern "C" __global__ void flag(volatile int* ready, int* data, int* out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 1) {
        data[0] = 7;
        __threadfence();
        ready[0] = 1;
    } else {
        while (ready[0] == 0) {
        }
        __threadfence();
        out[0] = data[0];
    }
}

extern "C" __global__ void hash(const unsigned* key, int* table, int n) {
    int i = threadIdx.x;
    unsigned h = key[i] * 2654435761u + 12345u;
    atomicAdd(&table[h % n], 1);
    atomicAdd(&table[(h * 31u) >> 28], 1);
}

extern "C" __global__ void shortest_ways(int* way, int n, int k) {
    int i = blockIdx.x, j = threadIdx.x;
    if (j < n) {
        int around = way[i * n + k] + way[k * n + j];
        way[i * n + j] = around < way[i * n + j] ? around : way[i * n + j];
    }
}

extern "C" __global__ void next_level(const int* from, const int* to, int* level, int edges, int depth) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges && level[from[e]] == depth) atomicCAS(&level[to[e]], -1, depth + 1);
}

extern "C" __global__ void counter_set_back(unsigned* done, const int* x, int* sum) {
    if (threadIdx.x == 0) {
        atomicAdd(sum, x[blockIdx.x]);
        __threadfence();
        if (atomicAdd(done, 1) == gridDim.x - 1) *done = 0;
    }
}

extern "C" __global__ void pieces_of_the_heap(int* out) {
    for (int k = 0; k < 3; ++k) {
        int* piece = (int*)malloc(16);
        for (int i = 0; i < 4; ++i) piece[i] = i + threadIdx.x;
        out[threadIdx.x] = piece[3];
        free(piece);
    }
}

extern "C" __global__ void arrays_side_by_side(const float* x, float* y) {
    extern __shared__ float dynamic[];
    __shared__ float first[64];
    __shared__ float second[2][64];
    int t = threadIdx.x;
    float* behind = dynamic + 64;
    first[t] = x[t];
    second[0][t] = second[1][t] = 1;
    dynamic[t] = behind[t] = 2;
    __syncthreads();
    const float* chosen = x[0] > 0 ? first : second[1];
    float sum = 0;
    for (const float* p = first; p != first + 64; ++p) sum += *p;
    // One beyond a row is in the next one, and minus one from the second half is in the first.
    y[t] = sum + chosen[63 - t] + second[0][t + 64] + behind[-1 - t];
}

extern "C" __global__ void sum_of_what_is_there(const float* x, float* y, int n) {
    // The mask has the lanes with data; a lane beside the last one reads nothing that it uses.
    int lane = threadIdx.x;
    if (lane >= n) return;
    unsigned mask = (1u << n) - 1;
    float sum = x[lane];
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_down_sync(mask, sum, offset);
        if (lane + offset < n) sum += other;
    }
    if (lane == 0) y[0] = sum;
}

extern "C" __global__ void last_lane_of_a_branch(const float* x, float* y) {
    // Lane 15 gets nothing, and does not look at it.
    int lane = threadIdx.x;
    if (lane < 16) {
        float next = __shfl_down_sync(0xffffu, x[lane], 1);
        if (lane < 15 && next > x[lane]) y[lane] = next;
    }
}

extern "C" __global__ void scan_of_half_a_warp(const int* x, int* y) {
    int lane = threadIdx.x, sum = x[lane];
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(0xffffffffu, sum, offset);
        sum += lane >= offset ? other : 0;
    }
    y[lane] = sum;
}

extern "C" __global__ void more_pieces_than_the_heap_holds(int* out) {
    for (int k = 0; k < 20; ++k) {
        int* piece = (int*)malloc(1 << 20);
        if (piece == nullptr) return;
        piece[k] = k;
        out[threadIdx.x] = piece[k];
        free(piece);
    }
}
