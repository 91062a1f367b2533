// Dense matrices: products in several ways, transposes, and factorizations by one block.

// 64 x 64 of C a block, 8 x 4 a thread, panels of A and B through shared memory; sizes are multiples of the tiles.
extern "C" __global__ void gemm_registers(const float* A, const float* B, float* C, int n, int k) {
    __shared__ float a[8][64], b[8][64];
    int t = threadIdx.x, row = t / 16 * 8, column = t % 16 * 4;
    const float* rows = A + blockIdx.y * 64 * k;
    float sums[8][4] = {};
    for (int p = 0; p < k; p += 8) {
        for (int i = t; i < 512; i += 128) {
            a[i % 8][i / 8] = rows[i / 8 * k + p + i % 8];
            b[i / 64][i % 64] = B[(p + i / 64) * n + blockIdx.x * 64 + i % 64];
        }
        __syncthreads();
#pragma unroll 1
        for (int q = 0; q < 8; q++) {
            float4 right = *reinterpret_cast<float4*>(&b[q][column]);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float left = a[q][row + i];
                sums[i][0] += left * right.x; sums[i][1] += left * right.y;
                sums[i][2] += left * right.z; sums[i][3] += left * right.w;
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        *reinterpret_cast<float4*>(&C[(blockIdx.y * 64 + row + i) * n + blockIdx.x * 64 + column]) =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}

// Any shape; the tile's edge is a template argument, the element type too.
template <typename T, int TILE>
__global__ void gemm_tiled(const T* A, const T* B, T* C, int m, int n, int k) {
    __shared__ T a[TILE][TILE + 1], b[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    T sum = 0;
    for (int p = 0; p < k; p += TILE) {
        a[threadIdx.y][threadIdx.x] = row < m && p + threadIdx.x < k ? A[row * k + p + threadIdx.x] : T(0);
        b[threadIdx.y][threadIdx.x] = p + threadIdx.y < k && column < n ? B[(p + threadIdx.y) * n + column] : T(0);
        __syncthreads();
        for (int q = 0; q < TILE; q++) sum += a[threadIdx.y][q] * b[q][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) C[row * n + column] = sum;
}

// A rectangle transposed through a padded tile, in place in a batch; the block may be any 32 x r.
extern "C" __global__ void transpose_batch(const double* in, double* out, int rows, int columns) {
    __shared__ double tile[32][33];
    size_t plane = (size_t)rows * columns * blockIdx.z;
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (x < columns && y + j < rows) tile[j][threadIdx.x] = in[plane + (y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (x < rows && y + j < columns) out[plane + (y + j) * rows + x] = tile[threadIdx.x][j];
}

// LU with partial pivoting in place; the pivot is found by a warp.
extern "C" __global__ void lu_pivoting(float* A, int* pivots, int n) {
    __shared__ int pivot;
    for (int k = 0; k < n; k++) {
        if (threadIdx.x < 32) {
            float best = -1;
            int where = k;
            for (int i = k + threadIdx.x; i < n; i += 32)
                if (fabsf(A[i * n + k]) > best) { best = fabsf(A[i * n + k]); where = i; }
            for (int step = 16; step; step /= 2) {
                float other = __shfl_xor_sync(~0u, best, step);
                int place = __shfl_xor_sync(~0u, where, step);
                if (other > best || (other == best && place < where)) { best = other; where = place; }
            }
            if (threadIdx.x == 0) pivots[k] = pivot = where;
        }
        __syncthreads();
        for (int j = threadIdx.x; j < n; j += blockDim.x) {
            float upper = A[k * n + j];
            A[k * n + j] = A[pivot * n + j];
            if (pivot != k) A[pivot * n + j] = upper;
        }
        __syncthreads();
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) A[i * n + k] /= A[k * n + k];
        __syncthreads();
        int left = n - k - 1;
        for (int e = threadIdx.x; e < left * left; e += blockDim.x) {
            int i = k + 1 + e / left, j = k + 1 + e % left;
            A[i * n + j] -= A[i * n + k] * A[k * n + j];
        }
        __syncthreads();
    }
}

// Cholesky, lower triangle, column by column.
extern "C" __global__ void cholesky(double* A, int n) {
    for (int k = 0; k < n; k++) {
        if (threadIdx.x == 0) A[k * n + k] = sqrt(A[k * n + k]);
        __syncthreads();
        double scale = 1.0 / A[k * n + k];
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) A[i * n + k] *= scale;
        __syncthreads();
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x)
            for (int j = k + 1; j <= i; j++) A[i * n + j] -= A[i * n + k] * A[j * n + k];
        __syncthreads();
    }
}

// Gauss-Jordan: each block solves one small system of a batch; one thread for each column of [A | b].
extern "C" __global__ void gauss_jordan(const double* systems, double* solutions, int n) {
    extern __shared__ double rows[];  // n x (n + 1)
    int width = n + 1, t = threadIdx.x;
    for (int i = 0; i < n; i++) rows[i * width + t] = systems[blockIdx.x * n * width + i * width + t];
    __syncthreads();
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(rows[i * width + k]) > fabs(rows[pivot * width + k])) pivot = i;
        __syncthreads();
        double mine = rows[pivot * width + t];
        rows[pivot * width + t] = rows[k * width + t];
        rows[k * width + t] = mine;
        __syncthreads();
        double top = rows[k * width + t] / rows[k * width + k];
        __syncthreads();
        for (int i = 0; i < n; i++) {
            double factor = rows[i * width + k];
            __syncthreads();
            rows[i * width + t] = i == k ? top : rows[i * width + t] - factor * top;
            __syncthreads();
        }
    }
    if (t < n) solutions[blockIdx.x * n + t] = rows[t * width + n];
}
