// matmul: c = a b in float32, one element of c per thread. a is n x k, b is k x m, c is n x m, all row-major.

#ifndef TILE
#define TILE 16
#endif

// threadIdx.x counts rows of c.
extern "C" __global__ void naive(const float *a, const float *b, float *c, int n, int m, int k)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < m) {
        float total = 0.0f;
        for (int i = 0; i < k; i++)
            total += a[row * k + i] * b[i * m + column];
        c[row * m + column] = total;
    }
}

// threadIdx.x counts columns of c.
extern "C" __global__ void coalesced(const float *a, const float *b, float *c, int n, int m, int k)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < m) {
        float total = 0.0f;
        for (int i = 0; i < k; i++)
            total += a[row * k + i] * b[i * m + column];
        c[row * m + column] = total;
    }
}

// The block copies a tile of a and of b to shared memory and uses every element TILE times.
extern "C" __global__ void tiled(const float *a, const float *b, float *c, int n, int m, int k)
{
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;
    float total = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        // Zeros past the edges: they add nothing, and no thread may leave before the barriers.
        a_tile[y][x] = row < n && start + x < k ? a[row * k + start + x] : 0.0f;
        b_tile[y][x] = start + y < k && column < m ? b[(start + y) * m + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            total += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    if (row < n && column < m)
        c[row * m + column] = total;
}
