// Transpositions through a tile of 32 x 32 floats, and without one. n is a multiple of 32, blocks are 32 x 32.

#define TILE 32

// b = the transpose of a; a warp writes along a row and reads down a column.
extern "C" __global__ void write_coalesced(const float *a, float *b, int n)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    b[y * n + x] = a[x * n + y];
}

// A warp reads along a row and writes down a column.
extern "C" __global__ void read_coalesced(const float *a, float *b, int n)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    b[x * n + y] = a[y * n + x];
}

// The tile turns it around. With PITCH 32 all of a column lies in one bank, with 33 in 32 banks.
template <int PITCH> __global__ void through_tile(const float *a, float *b, int n)
{
    __shared__ float tile[TILE][PITCH];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = a[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    b[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// Each row of the tile is permuted by its number instead.
extern "C" __global__ void swizzled(const float *a, float *b, int n)
{
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = a[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    b[y * n + x] = tile[threadIdx.x][threadIdx.x ^ threadIdx.y];
}
