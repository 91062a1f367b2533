// Sorting: bitonic network, radix passes, merge path, odd-even exchange, and quicksort with a stack of its own.

// One block sorts `width` keys (a power of two) in shared memory, the last ones padded; values travel along.
extern "C" __global__ void sort_bitonic(float* keys, int* values, int n, int width) {
    extern __shared__ float key[];
    int* value = reinterpret_cast<int*>(key + width);
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        key[i] = i < n ? keys[i] : __int_as_float(0x7f800000);
        value[i] = i < n ? values[i] : -1;
    }
    for (int size = 2; size <= width; size *= 2)
        for (int gap = size / 2; gap > 0; gap /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < width; i += blockDim.x) {
                int j = i ^ gap;
                bool up = (i & size) == 0;
                if (j > i && (key[i] > key[j]) == up && key[i] != key[j]) {
                    float k = key[i]; key[i] = key[j]; key[j] = k;
                    int v = value[i]; value[i] = value[j]; value[j] = v;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) { keys[i] = key[i]; values[i] = value[i]; }
}

// Radix sort, two bits a pass, in one block: a stable split by ballots; any n up to the block's size.
extern "C" __global__ void sort_radix(unsigned* keys, int n, int bits) {
    __shared__ unsigned counts[4][33], sorted[256];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5, warps = (blockDim.x + 31) / 32;
    unsigned key = t < n ? keys[t] : ~0u;
    for (int shift = 0; shift < bits; shift += 2) {
        unsigned digit = key >> shift & 3, mine = 0;
        for (unsigned d = 0; d < 4; d++) {
            unsigned votes = __ballot_sync(~0u, digit == d);
            if (lane == 0) counts[d][warp] = __popc(votes);
            if (digit == d) mine = votes;
        }
        __syncthreads();
        if (t == 0) {
            unsigned before = 0;
            for (int d = 0; d < 4; d++)
                for (int w = 0; w < warps; w++) { unsigned c = counts[d][w]; counts[d][w] = before; before += c; }
        }
        __syncthreads();
        sorted[counts[digit][warp] + __popc(mine & ((1u << lane) - 1))] = key;
        __syncthreads();
        key = sorted[t];
        __syncthreads();
    }
    if (t < n) keys[t] = key;
}

// Merges two sorted arrays: each thread finds by bisection where its `per_thread` outputs begin, then merges them.
extern "C" __global__ void merge_path(const int* a, int na, const int* b, int nb, int* out, int per_thread) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
    if (first >= na + nb) return;
    int low = max(0, first - nb), high = min(first, na);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle]) low = middle + 1; else high = middle;
    }
    int i = low, j = first - low;
    for (int k = first; k < min(first + per_thread, na + nb); k++)
        out[k] = j >= nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
}

// Exchange of neighbors until a round changes nothing (one block).
extern "C" __global__ void sort_odd_even(short* keys, int n, int* rounds) {
    int count = 0;
    for (bool changed = true; changed; count++) {
        bool mine = false;
        for (int odd = 0; odd < 2; odd++) {
            for (int i = 2 * threadIdx.x + odd; i + 1 < n; i += 2 * blockDim.x)
                if (keys[i] > keys[i + 1]) { short k = keys[i]; keys[i] = keys[i + 1]; keys[i + 1] = k; mine = true; }
            __syncthreads();
        }
        changed = __syncthreads_or(mine);
    }
    if (threadIdx.x == 0) *rounds = count;
}

// Each thread sorts its own row with quicksort; pending ranges are on a stack in local memory.
extern "C" __global__ void sort_rows_quick(int* rows, const int* lengths, int width, int count) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    int* row = rows + r * width;
    int lows[12], highs[12], depth = 0;
    lows[0] = 0; highs[0] = lengths[r] - 1; depth = 1;
    while (depth) {
        int low = lows[--depth], high = highs[depth];
        while (low < high) {
            int pivot = row[(low + high) / 2], i = low, j = high;
            while (i <= j) {
                while (row[i] < pivot) i++;
                while (row[j] > pivot) j--;
                if (i <= j) { int k = row[i]; row[i++] = row[j]; row[j--] = k; }
            }
            bool left_is_longer = j - low > high - i;  // the longer part waits, so that the stack stays small
            lows[depth] = left_is_longer ? low : i;
            highs[depth++] = left_is_longer ? j : high;
            if (left_is_longer) low = i; else high = j;
        }
    }
}
