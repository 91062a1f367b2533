// Threads that wait for others: locks, flags, and barriers made of them.

// Each thread puts its item into one of a few sorted linked lists, under a lock of the list; lanes of a warp meet at it.
extern "C" __global__ void insert_sorted(const int* values, int n, int* heads, int* next, int* locks, int lists) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int list = values[i] % lists;
    while (atomicCAS(&locks[list], 0, 1) != 0) {}
    __threadfence();
    volatile int* heads_now = heads;
    volatile int* next_now = next;
    int before = -1, here = heads_now[list];
    while (here >= 0 && values[here] < values[i]) { before = here; here = next_now[here]; }
    next_now[i] = here;
    if (before < 0) heads_now[list] = i; else next_now[before] = i;
    __threadfence();
    atomicExch(&locks[list], 0);
}

// A warp produces, the next one consumes, through a ring of slots in shared memory with flags.
extern "C" __global__ void pass_along(const int* in, long long* out, int rounds) {
    __shared__ volatile int slots[2][32];
    __shared__ volatile int filled[2];
    int lane = threadIdx.x & 31;
    if (threadIdx.x < 2) filled[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int r = 0; r < rounds; r++) {
            while (filled[r & 1]) {}
            slots[r & 1][lane] = in[r * 32 + lane] * 3;
            __threadfence_block();
            __syncwarp();
            if (lane == 0) filled[r & 1] = 1;
            __syncwarp();
        }
    } else {
        long long sum = 0;
        for (int r = 0; r < rounds; r++) {
            while (!filled[r & 1]) {}
            __threadfence_block();
            sum += slots[r & 1][31 - lane] * (r + 1ll);
            __syncwarp();
            if (lane == 0) filled[r & 1] = 0;
            __syncwarp();
        }
        out[lane] = sum;
    }
}

// Blocks hand a token on in the order of their numbers, from the last to the first: all must be in flight.
extern "C" __global__ void hand_on(volatile int* turn, int* order, int* place) {
    if (threadIdx.x == 0) {
        while (*turn != (int)(gridDim.x - 1 - blockIdx.x)) __nanosleep(20);
        order[atomicAdd(place, 1)] = blockIdx.x;
        __threadfence();
        *turn = *turn + 1;
    }
}

// Heat on a ring, all steps in one launch: a barrier of the grid made by hand from an atomic and a flag of generations.
extern "C" __global__ void heat_by_hand(float* a, float* b, int n, int steps, unsigned* arrived, volatile unsigned* generation) {
    for (int s = 0; s < steps; s++) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            b[i] = a[i] + 0.25f * (a[(i + 1) % n] + a[(i + n - 1) % n] - 2 * a[i]);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            if (atomicAdd(arrived, 1) == gridDim.x - 1) { atomicExch(arrived, 0); __threadfence(); *generation = s + 1; }
            else while (*generation != s + 1) {}
        }
        __syncthreads();
        float* other = a; a = b; b = other;
    }
}

// The last block to finish adds up what the others left (threadfence reduction).
__device__ unsigned finished = 0;
extern "C" __global__ void sum_last_block(const float* in, int n, volatile float* parts, float* total) {
    __shared__ float sums[64];
    __shared__ bool last;
    float sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += in[i];
    sums[threadIdx.x] = sum;
    for (int step = 32; step; step /= 2) { __syncthreads(); if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step]; }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) { float all = 0; for (int b = 0; b < gridDim.x; b++) all += parts[b]; *total = all; }
}
