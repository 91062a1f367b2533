// Transpositions, as the sources of the expected counters describe them. Blocks are as large as the launch says.

// Thread (x, y) of the grid writes out[y][x]; a warp reads down a column.
template <typename T> __global__ void read_columns(const T *in, T *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[y * n + x] = in[x * n + y];
}

// Thread (x, y) of the grid reads in[y][x]; a warp writes down a column.
template <typename T> __global__ void read_rows(const T *in, T *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[x * n + y] = in[y * n + x];
}

// A square tile is stored by columns and loaded by rows. A row of it takes PITCH elements.
template <int PITCH> __global__ void through_tile(const double *in, double *out, int n)
{
    __shared__ double tile[32][PITCH];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.x][threadIdx.y] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.y][threadIdx.x];
}

// A tile of 16 rows and 32 columns with two unused columns is stored by rows and loaded by columns.
extern "C" __global__ void through_flat_tile(const float *in, float *out, int n)
{
    __shared__ float tile[16][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    int i = threadIdx.y * 32 + threadIdx.x, row = i % 16, column = i / 16;
    out[(blockIdx.x * 32 + column) * n + blockIdx.y * 16 + row] = tile[row][column];
}
