// sgemm: c = a b in float32 for matrices of n x n, row-major. n is a multiple of the largest tile, 128.
// Each kernel has one more idea than the one before it.

// One element of c for each thread; threadIdx.x counts rows, so that a warp reads and writes down columns.
extern "C" __global__ void uncoalesced(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// threadIdx.x counts columns.
extern "C" __global__ void coalesced(const float *a, const float *b, float *c, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// The block shares tiles of a and b.
template <int TILE> __global__ void block_tile(const float *a, const float *b, float *c, int n)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        a_tile[y][x] = a[row * n + start + x];
        b_tile[y][x] = b[(start + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum += a_tile[y][k] * b_tile[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Threads copy ROWS rows of COLUMNS floats, one float at a time.
template <int ROWS, int COLUMNS, int THREADS>
__device__ void copy_tile(float (*tile)[COLUMNS], const float *from, int n)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS)
        tile[i / COLUMNS][i % COLUMNS] = from[i / COLUMNS * n + i % COLUMNS];
}

// The same, four floats at a time.
template <int ROWS, int COLUMNS, int THREADS>
__device__ void copy_tile_by_fours(float (*tile)[COLUMNS], const float *from, int n)
{
#pragma unroll
    for (int i = threadIdx.x * 4; i < ROWS * COLUMNS; i += THREADS * 4)
        *(float4 *)&tile[i / COLUMNS][i % COLUMNS] = *(const float4 *)&from[i / COLUMNS * n + i % COLUMNS];
}

// Four floats of a row at a time go to a column of the tile.
template <int ROWS, int COLUMNS, int THREADS>
__device__ void transpose_tile_by_fours(float (*tile)[ROWS], const float *from, int n)
{
#pragma unroll
    for (int i = threadIdx.x * 4; i < ROWS * COLUMNS; i += THREADS * 4) {
        int row = i / COLUMNS, column = i % COLUMNS;
        float4 four = *(const float4 *)&from[row * n + column];
        tile[column][row] = four.x;
        tile[column + 1][row] = four.y;
        tile[column + 2][row] = four.z;
        tile[column + 3][row] = four.w;
    }
}

// A thread has TM elements of a column of c and uses each element of b that it loads TM times.
template <int BM, int BN, int BK, int TM>
__global__ void __launch_bounds__(BM *BN / TM) thread_tile_1d(const float *a, const float *b, float *c, int n)
{
    constexpr int THREADS = BM * BN / TM;
    __shared__ float a_tile[BM][BK], b_tile[BK][BN];
    a += blockIdx.y * BM * n;
    b += blockIdx.x * BN;
    int column = threadIdx.x % BN, row = threadIdx.x / BN * TM;
    float sums[TM] = {};
    for (int start = 0; start < n; start += BK) {
        copy_tile<BM, BK, THREADS>(a_tile, a + start, n);
        copy_tile<BK, BN, THREADS>(b_tile, b + start * n, n);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
            float factor = b_tile[k][column];
#pragma unroll
            for (int i = 0; i < TM; i++)
                sums[i] += a_tile[row + i][k] * factor;
        }
        __syncthreads();
    }
    c += blockIdx.y * BM * n + blockIdx.x * BN;
    for (int i = 0; i < TM; i++)
        c[(row + i) * n + column] = sums[i];
}

// sums += the outer product of TM elements of a column of a and TN elements of a row of b.
template <int TM, int TN> __device__ void add_outer(float (&sums)[TM][TN], const float (&left)[TM], const float (&right)[TN])
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            sums[i][j] += left[i] * right[j];
}

// COUNT floats of shared memory to registers, four at a time.
template <int COUNT> __device__ void load_fours(float (&to)[COUNT], const float *from)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        float4 four = *(const float4 *)&from[i];
        to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
}

template <int TM, int TN> __device__ void store_fours(float *c, const float (&sums)[TM][TN], int n)
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)&c[i * n + j] = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
}

// A thread has TM x TN elements of c.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / TM / TN, 2) thread_tile_2d(const float *a, const float *b, float *c, int n)
{
    constexpr int THREADS = BM * BN / TM / TN;
    __shared__ float a_tile[BM][BK], b_tile[BK][BN];
    a += blockIdx.y * BM * n;
    b += blockIdx.x * BN;
    int column = threadIdx.x % (BN / TN) * TN, row = threadIdx.x / (BN / TN) * TM;
    float sums[TM][TN] = {}, left[TM], right[TN];
    for (int start = 0; start < n; start += BK) {
        copy_tile<BM, BK, THREADS>(a_tile, a + start, n);
        copy_tile<BK, BN, THREADS>(b_tile, b + start * n, n);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
#pragma unroll
            for (int i = 0; i < TM; i++)
                left[i] = a_tile[row + i][k];
#pragma unroll
            for (int j = 0; j < TN; j++)
                right[j] = b_tile[k][column + j];
            add_outer(sums, left, right);
        }
        __syncthreads();
    }
    c += (blockIdx.y * BM + row) * n + blockIdx.x * BN + column;
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++)
            c[i * n + j] = sums[i][j];
}

// Four floats at a time, wherever they lie beside each other.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / TM / TN, 2) vectorized(const float *a, const float *b, float *c, int n)
{
    constexpr int THREADS = BM * BN / TM / TN;
    __shared__ __align__(16) float a_tile[BM][BK], b_tile[BK][BN];
    a += blockIdx.y * BM * n;
    b += blockIdx.x * BN;
    int column = threadIdx.x % (BN / TN) * TN, row = threadIdx.x / (BN / TN) * TM;
    float sums[TM][TN] = {}, left[TM], right[TN];
    for (int start = 0; start < n; start += BK) {
        copy_tile_by_fours<BM, BK, THREADS>(a_tile, a + start, n);
        copy_tile_by_fours<BK, BN, THREADS>(b_tile, b + start * n, n);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
#pragma unroll
            for (int i = 0; i < TM; i++)
                left[i] = a_tile[row + i][k];
            load_fours(right, &b_tile[k][column]);
            add_outer(sums, left, right);
        }
        __syncthreads();
    }
    store_fours(c + (blockIdx.y * BM + row) * n + blockIdx.x * BN + column, sums, n);
}

// The tile of a is transposed on the way to shared memory, so that a thread's elements of it lie beside each other too.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / TM / TN, 2) a_transposed(const float *a, const float *b, float *c, int n)
{
    constexpr int THREADS = BM * BN / TM / TN;
    __shared__ __align__(16) float a_tile[BK][BM], b_tile[BK][BN];
    a += blockIdx.y * BM * n;
    b += blockIdx.x * BN;
    int column = threadIdx.x % (BN / TN) * TN, row = threadIdx.x / (BN / TN) * TM;
    float sums[TM][TN] = {}, left[TM], right[TN];
    for (int start = 0; start < n; start += BK) {
        transpose_tile_by_fours<BM, BK, THREADS>(a_tile, a + start, n);
        copy_tile_by_fours<BK, BN, THREADS>(b_tile, b + start * n, n);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
            load_fours(left, &a_tile[k][row]);
            load_fours(right, &b_tile[k][column]);
            add_outer(sums, left, right);
        }
        __syncthreads();
    }
    store_fours(c + (blockIdx.y * BM + row) * n + blockIdx.x * BN + column, sums, n);
}

// A warp has a tile of WM x WN, its lanes 4 x 8 parts of it: two quarters of four rows and two of four columns for each lane.
template <int BM, int BN, int BK, int WM, int WN>
__global__ void __launch_bounds__(BM *BN / WM / WN * 32, 2) warp_tile(const float *a, const float *b, float *c, int n)
{
    constexpr int THREADS = BM * BN / WM / WN * 32;
    __shared__ __align__(16) float a_tile[BK][BM], b_tile[BK][BN];
    a += blockIdx.y * BM * n;
    b += blockIdx.x * BN;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + lane / 8 * 4, column = warp % (BN / WN) * WN + lane % 8 * 4;
    float sums[2][2][4][4] = {}, left[2][4], right[2][4];
    for (int start = 0; start < n; start += BK) {
        transpose_tile_by_fours<BM, BK, THREADS>(a_tile, a + start, n);
        copy_tile_by_fours<BK, BN, THREADS>(b_tile, b + start * n, n);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
#pragma unroll
            for (int part = 0; part < 2; part++) {
                load_fours(left[part], &a_tile[k][row + part * WM / 2]);
                load_fours(right[part], &b_tile[k][column + part * WN / 2]);
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    add_outer(sums[i][j], left[i], right[j]);
        }
        __syncthreads();
    }
    c += (blockIdx.y * BM + row) * n + blockIdx.x * BN + column;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            store_fours(c + i * WM / 2 * n + j * WN / 2, sums[i][j], n);
}

// While a tile is used, the next one is on its way to registers, and then to the other half of shared memory.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM *BN / TM / TN, 2) prefetched(const float *a, const float *b, float *c, int n)
{
    static_assert(BM * BK == BM * BN / TM / TN * 4 && BK * BN == BM * BK, "each thread copies one float4 of a and one of b");
    __shared__ __align__(16) float a_tile[2][BK][BM], b_tile[2][BK][BN];
    int i = threadIdx.x * 4, a_row = i / BK, a_column = i % BK, b_row = i / BN, b_column = i % BN;
    a += (blockIdx.y * BM + a_row) * n + a_column;
    b += b_row * n + blockIdx.x * BN + b_column;
    int column = threadIdx.x % (BN / TN) * TN, row = threadIdx.x / (BN / TN) * TM;
    float sums[TM][TN] = {}, left[TM], right[TN];
    float4 next_a = *(const float4 *)a, next_b = *(const float4 *)b;
    for (int start = 0, half = 0; start < n; start += BK, half ^= 1) {
        a_tile[half][a_column][a_row] = next_a.x;
        a_tile[half][a_column + 1][a_row] = next_a.y;
        a_tile[half][a_column + 2][a_row] = next_a.z;
        a_tile[half][a_column + 3][a_row] = next_a.w;
        *(float4 *)&b_tile[half][b_row][b_column] = next_b;
        __syncthreads();
        if (start + BK < n) {
            next_a = *(const float4 *)(a + start + BK);
            next_b = *(const float4 *)(b + (start + BK) * n);
        }
#pragma unroll
        for (int k = 0; k < BK; k++) {
            load_fours(left, &a_tile[half][k][row]);
            load_fours(right, &b_tile[half][k][column]);
            add_outer(sums, left, right);
        }
    }
    store_fours(c + (blockIdx.y * BM + row) * n + blockIdx.x * BN + column, sums, n);
}
