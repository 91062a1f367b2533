// Prefix sums: doubling steps, up and down a tree, by shuffles, and over all blocks in one pass with look-back.

// Inclusive; one block, any number of items up to the block's threads; two buffers in turn.
extern "C" __global__ void scan_doubling(const int* in, int* out, int n) {
    extern __shared__ int buffers[];
    int t = threadIdx.x, from = 0, to = blockDim.x;
    buffers[t] = t < n ? in[t] : 0;
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        buffers[to + t] = buffers[from + t] + (t >= step ? buffers[from + t - step] : 0);
        int other = from; from = to; to = other;
    }
    if (t < n) out[t] = buffers[from + t];
}

// Exclusive; each block scans 2 * blockDim.x items (a power of two) and leaves its total.
extern "C" __global__ void scan_tree(const int* in, int* out, int* totals, int n) {
    extern __shared__ int tree[];
    int width = 2 * blockDim.x, first = blockIdx.x * width, t = threadIdx.x;
    for (int k = t; k < width; k += blockDim.x) tree[k] = first + k < n ? in[first + k] : 0;
    int gap = 1;
    for (int pairs = blockDim.x; pairs > 0; pairs >>= 1, gap *= 2) {
        __syncthreads();
        if (t < pairs) tree[gap * (2 * t + 2) - 1] += tree[gap * (2 * t + 1) - 1];
    }
    if (t == 0) { totals[blockIdx.x] = tree[width - 1]; tree[width - 1] = 0; }
    for (int pairs = 1; pairs < width; pairs *= 2) {
        gap >>= 1;
        __syncthreads();
        if (t < pairs) {
            int left = gap * (2 * t + 1) - 1, right = gap * (2 * t + 2) - 1, value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
    }
    __syncthreads();
    for (int k = t; k < width; k += blockDim.x) if (first + k < n) out[first + k] = tree[k];
}

extern "C" __global__ void add_offsets(int* out, const int* offsets, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += offsets[i / width];
}

// Inclusive, segmented: sums start anew where a head flag is set; warps by shuffles, then over the warps' tails.
extern "C" __global__ void scan_segments(const float* in, const unsigned char* head, float* out, int n) {
    __shared__ float tails[32];
    __shared__ bool flags[32];
    int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    float sum = i < n ? in[i] : 0.0f;
    bool flag = i < n && head[i];
    for (int step = 1; step < 32; step *= 2) {
        float before = __shfl_up_sync(~0u, sum, step);
        bool closed = __shfl_up_sync(~0u, (int)flag, step);
        if (lane >= step) {
            if (!flag) sum += before;
            flag |= closed;
        }
    }
    if (lane == 31) { tails[warp] = sum; flags[warp] = flag; }
    __syncthreads();
    float carry = 0.0f;
    for (int w = 0; w < warp; w++) carry = flags[w] ? tails[w] : carry + tails[w];
    if (i < n) out[i] = flag ? sum : sum + carry;
}

// Inclusive, one pass: a block takes a ticket, publishes its total, and adds up its predecessors' until it finds a prefix.
enum State { EMPTY, TOTAL, PREFIX };
extern "C" __global__ void scan_look_back(const int* in, int* out, int n, unsigned* tickets, volatile int* state,
                                          volatile int* totals, volatile int* prefixes) {
    __shared__ int warps[32], my_ticket, before;
    if (threadIdx.x == 0) my_ticket = atomicAdd(tickets, 1);
    __syncthreads();
    int block = my_ticket, i = block * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int sum = i < n ? in[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) sum += warps[w];
    if (threadIdx.x == blockDim.x - 1) {
        totals[block] = sum;
        __threadfence();
        state[block] = TOTAL;
        int found = 0;
        for (int other = block - 1; other >= 0;) {
            int what = state[other];
            if (what == EMPTY) continue;
            __threadfence();
            found += what == PREFIX ? prefixes[other] : totals[other];
            other = what == PREFIX ? -1 : other - 1;
        }
        prefixes[block] = found + sum;
        __threadfence();
        state[block] = PREFIX;
        before = found;
    }
    __syncthreads();
    if (i < n) out[i] = sum + before;
}
