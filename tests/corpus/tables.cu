// Dynamic programming: tables filled along anti-diagonals, by rounds, or row by row.

// Needleman-Wunsch: the best score of a global alignment; one block sweeps the anti-diagonals of the whole table.
extern "C" __global__ void align_global(const char* a, int na, const char* b, int nb, int gap, int* table) {
    int pitch = nb + 1;
    for (int i = threadIdx.x; i <= max(na, nb); i += blockDim.x) {
        if (i <= na) table[i * pitch] = -gap * i;
        if (i <= nb) table[i] = -gap * i;
    }
    for (int diagonal = 2; diagonal <= na + nb; diagonal++) {
        __syncthreads();
        int first = max(1, diagonal - nb), last = min(na, diagonal - 1);
        for (int i = first + threadIdx.x; i <= last; i += blockDim.x) {
            int j = diagonal - i, *here = &table[i * pitch + j];
            int match = here[-pitch - 1] + (a[i - 1] == b[j - 1] ? 2 : -1);
            *here = max(match, max(here[-1], here[-pitch]) - gap);
        }
    }
}

// Smith-Waterman: the best local alignment of one query with many texts, a block each, three diagonals in shared memory.
extern "C" __global__ void align_local(const char* query, int nq, const char* texts, const int* starts, int* best) {
    extern __shared__ int diagonals[];
    __shared__ int top;
    const char* text = texts + starts[blockIdx.x];
    int nt = starts[blockIdx.x + 1] - starts[blockIdx.x], mine = 0;
    int *before = diagonals, *last = before + nq + 1, *now = last + nq + 1;
    for (int i = threadIdx.x; i < 3 * (nq + 1); i += blockDim.x) diagonals[i] = 0;
    if (threadIdx.x == 0) top = 0;
    for (int diagonal = 2; diagonal <= nq + nt; diagonal++) {
        __syncthreads();
        for (int i = 1 + threadIdx.x; i <= nq; i += blockDim.x) {
            int j = diagonal - i, score = 0;
            if (j >= 1 && j <= nt) {
                score = before[i - 1] + (query[i - 1] == text[j - 1] ? 3 : -2);
                score = max(max(score, 0), max(last[i], last[i - 1]) - 4);
            }
            now[i] = score;
            mine = max(mine, score);
        }
        int* free = before; before = last; last = now; now = free;
    }
    __syncthreads();
    atomicMax(&top, mine);
    __syncthreads();
    if (threadIdx.x == 0) best[blockIdx.x] = top;
}

// Length of the longest common subsequence with bits: a row of the table is the set bits of 64-bit words of one thread.
extern "C" __global__ void common_subsequence(const char* a, const int* starts, const char* b, int nb, int* lengths,
                                              int count) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const char* mine = a + starts[pair];
    int n = starts[pair + 1] - starts[pair];  // at most 64
    unsigned long long row = ~0ull;
    for (int j = 0; j < nb; j++) {
        unsigned long long matches = 0;
        for (int i = 0; i < n; i++) matches |= (unsigned long long)(mine[i] == b[j]) << i;
        unsigned long long both = row & matches;
        row = (row + both) | (row - both);
    }
    unsigned long long inside = n < 64 ? (1ull << n) - 1 : ~0ull;
    lengths[pair] = __popcll(~row & inside);
}

// Edit distances between all pairs of words: each thread keeps one row of the table in local memory.
extern "C" __global__ void edit_distances(const char* words, int length, int count, unsigned char* distances) {
    int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y;
    if (a >= count || b >= count) return;
    unsigned char row[17];
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; i <= length && words[a * length + i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int replaced = corner + (words[a * length + i - 1] != words[b * length + j - 1]);
            corner = row[j];
            row[j] = min(replaced, 1 + min((int)row[j], (int)row[j - 1]));
        }
    }
    int end = 0;
    while (end < length && words[b * length + end]) end++;
    distances[a * count + b] = row[end];
}

// Floyd-Warshall, one round a launch, with the way back.
extern "C" __global__ void shortest_round(float* distance, int* via, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    float around = distance[i * n + k] + distance[k * n + j];
    if (around < distance[i * n + j]) { distance[i * n + j] = around; via[i * n + j] = k; }
}
