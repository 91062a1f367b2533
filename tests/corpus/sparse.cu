// Sparse matrices and graphs: products in three formats, ranks, searches, components, shortest paths.

// A row a thread.
extern "C" __global__ void spmv_scalar(const int* starts, const int* columns, const float* values, const float* x,
                                       float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int e = starts[row]; e < starts[row + 1]; e++) sum += values[e] * x[columns[e]];
    y[row] = sum;
}

// A row for each group of `WIDTH` lanes.
template <int WIDTH>
__global__ void spmv_vector(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / WIDTH, lane = threadIdx.x % WIDTH;
    float sum = 0;
    if (row < rows)
        for (int e = starts[row] + lane; e < starts[row + 1]; e += WIDTH) sum += values[e] * x[columns[e]];
    for (int step = WIDTH / 2; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step, WIDTH);
    if (row < rows && lane == 0) y[row] = sum;
}

// Padded columns in column-major order; -1 marks the padding.
extern "C" __global__ void spmv_ell(const int* columns, const double* values, const double* x, double* y, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = 0; k < width; k++) {
        int column = columns[k * rows + row];
        if (column >= 0) sum += values[k * rows + row] * x[column];
    }
    y[row] = sum;
}

// Coordinates with atomics.
extern "C" __global__ void spmv_coordinates(const int2* places, const double* values, const double* x, double* y, int count) {
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < count; e += gridDim.x * blockDim.x)
        atomicAdd(&y[places[e].x], values[e] * x[places[e].y]);
}

// One step of PageRank over incoming edges; what the change sums to is reduced by warps.
extern "C" __global__ void page_rank(const int* starts, const int* sources, const int* out_degrees, const float* rank,
                                     float* next, float damping, int n, float* change) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    float moved = 0;
    if (page < n) {
        float sum = 0;
        for (int e = starts[page]; e < starts[page + 1]; e++) sum += rank[sources[e]] / out_degrees[sources[e]];
        next[page] = (1 - damping) / n + damping * sum;
        moved = fabsf(next[page] - rank[page]);
    }
    for (int step = 16; step; step >>= 1) moved += __shfl_xor_sync(~0u, moved, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(change, moved);
}

// A level of a breadth-first search: the frontier's neighbors that nobody has reached go into the next queue.
extern "C" __global__ void search_level(const int* starts, const int* targets, int* level, const int* queue, int size,
                                        int* next, int* next_size, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int node = queue[i];
    for (int e = starts[node]; e < starts[node + 1]; e++)
        if (atomicCAS(&level[targets[e]], -1, depth) == -1) next[atomicAdd(next_size, 1)] = targets[e];
}

// A round of connected components: hang the larger root below the smaller one, then shorten the way.
extern "C" __global__ void join_components(const int2* edges, int count, int* parent, int* changed) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    int a = edges[e].x, b = edges[e].y;
    while (parent[a] != a) a = parent[a];
    while (parent[b] != b) b = parent[b];
    if (a == b) return;
    *changed = 1;
    atomicMin(&parent[max(a, b)], min(a, b));
}

extern "C" __global__ void shorten_ways(const int* parent, int* shorter, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int root = i;
    while (parent[root] != root) root = parent[root];
    shorter[i] = root;
}

// A round of Bellman-Ford over edges.
extern "C" __global__ void relax(const int* from, const int* to, const unsigned* weight, int count,
                                 unsigned* distance, int* changed) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count || distance[from[e]] == ~0u) return;
    unsigned around = distance[from[e]] + weight[e];
    if (around < atomicMin(&distance[to[e]], around)) atomicExch(changed, 1);
}
