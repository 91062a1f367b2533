// transpose: one side of a transposition always walks columns, unless a tile of shared memory turns it around.
// a has `rows` rows and `columns` columns, out the reverse, both row-major.

#define TILE 32

// Read along rows, write down columns.
extern "C" __global__ void naive(const float *a, float *out, int rows, int columns)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y)
        if (row + y < rows && column < columns)
            out[column * rows + row + y] = a[(row + y) * columns + column];
}

// Read and write along rows; turn in shared memory.
extern "C" __global__ void tiled(const float *a, float *out, int rows, int columns)
{
    __shared__ float tile[TILE][TILE];
    int x = threadIdx.x;
    int column = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y)
        if (row + y < rows && column < columns)
            tile[y][x] = a[(row + y) * columns + column];
    __syncthreads();
    column = blockIdx.y * TILE + x;
    row = blockIdx.x * TILE;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y)
        if (row + y < columns && column < rows)
            out[(row + y) * rows + column] = tile[x][y];
}

// As `tiled`, with an unused column, so that a column of the tile lies in 32 banks.
extern "C" __global__ void padded(const float *a, float *out, int rows, int columns)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = threadIdx.x;
    int column = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y)
        if (row + y < rows && column < columns)
            tile[y][x] = a[(row + y) * columns + column];
    __syncthreads();
    column = blockIdx.y * TILE + x;
    row = blockIdx.x * TILE;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y)
        if (row + y < columns && column < rows)
            out[(row + y) * rows + column] = tile[x][y];
}
