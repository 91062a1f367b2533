// Counting and compacting: histograms, stream compaction with ballots, run lengths.

extern "C" __global__ void histogram_shared(const unsigned char* data, int n, unsigned* bins, int bin_count) {
    extern __shared__ unsigned mine[];
    for (int b = threadIdx.x; b < bin_count; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i] % bin_count], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < bin_count; b += blockDim.x)
        if (mine[b]) atomicAdd(&bins[b], mine[b]);
}

// One 8-bit counter per thread and bin, four bins packed in a word: no atomics until the counters are summed.
extern "C" __global__ void histogram_privatized(const unsigned* words, int n, unsigned* bins) {
    __shared__ unsigned char counts[16][64];
    unsigned* row = reinterpret_cast<unsigned*>(&counts[0][0]);
    for (int w = threadIdx.x; w < 16 * 64 / 4; w += 64) row[w] = 0;
    __syncthreads();
    int most = min(n, (int)(blockIdx.x + 1) * 255 * 8);
    for (int i = blockIdx.x * 255 * 8 + threadIdx.x; i < most; i += 64)
        for (unsigned word = words[i], k = 0; k < 8; k++, word >>= 4) counts[word & 15][threadIdx.x]++;
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned sum = 0;
#pragma unroll 1
        for (int t = 0; t < 64; t++) sum += counts[threadIdx.x][(t + threadIdx.x) % 64];
        atomicAdd(&bins[threadIdx.x], sum);
    }
}

// Keeps the items above a limit, in order within each warp; warps take their place in the output as they come.
extern "C" __global__ void compact(const int* in, int n, int limit, int* out, int* kept) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && in[i] > limit;
    unsigned votes = __ballot_sync(0xffffffffu, keep);
    int start = 0;
    if (lane == 0 && votes) start = atomicAdd(kept, __popc(votes));
    start = __shfl_sync(0xffffffffu, start, 0);
    if (keep) out[start + __popc(votes & ((1u << lane) - 1))] = in[i];
}

// Run-length encoding by one block: marks heads of runs, numbers them by a scan of ballots, then writes.
extern "C" __global__ void run_lengths(const char* text, int n, char* values, int* lengths, int* runs) {
    __shared__ int heads_before[33];
    __shared__ int base;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) / 32;
    if (threadIdx.x == 0) base = 0;
    __syncthreads();
    for (int start = 0; start < n; start += blockDim.x) {
        int i = start + threadIdx.x;
        bool head = i < n && (i == 0 || text[i] != text[i - 1]);
        unsigned votes = __ballot_sync(__activemask(), head);
        if (lane == 0) heads_before[warp + 1] = __popc(votes);
        __syncthreads();
        if (threadIdx.x == 0) {
            heads_before[0] = base;
            for (int w = 0; w < warps; w++) heads_before[w + 1] += heads_before[w];
            base = heads_before[warps];
        }
        __syncthreads();
        if (head) {
            int run = heads_before[warp] + __popc(votes & ((1u << lane) - 1)), end = i + 1;
            while (end < n && text[end] == text[i]) end++;
            values[run] = text[i];
            lengths[run] = end - i;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *runs = base;
}
