// The kernels of the speed benchmark in CUDA C++. Each is what a textbook would show.

__device__ void multiply(const float *a, const float *b, float *c, int n, int row, int column)
{
    if (row < n && column < n) {
        float total = 0.0f;
        for (int k = 0; k < n; k++)
            total += a[row * n + k] * b[k * n + column];
        c[row * n + column] = total;
    }
}

extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int n)
{
    multiply(a, b, c, n, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x);
}

// threadIdx.x counts rows: lanes walk down a column.
extern "C" __global__ void sgemm_columns(const float *a, const float *b, float *c, int n)
{
    multiply(a, b, c, n, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
}

template <int TILE>
__device__ void multiply_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float total = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        a_tile[y][x] = a[row * n + start + x];
        b_tile[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            total += a_tile[y][k] * b_tile[k][x];
        __syncthreads();
    }
    c[row * n + column] = total;
}

extern "C" __global__ void sgemm_tiled16(const float *a, const float *b, float *c, int n)
{
    multiply_tiled<16>(a, b, c, n);
}

extern "C" __global__ void sgemm_tiled32(const float *a, const float *b, float *c, int n)
{
    multiply_tiled<32>(a, b, c, n);
}

template <int TILE, int ROWS>
__device__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void transpose16(const float *in, float *out, int n)
{
    transpose<16, 16>(in, out, n);
}

extern "C" __global__ void transpose32(const float *in, float *out, int n)
{
    transpose<32, 8>(in, out, n);
}

extern "C" __global__ void reduction(const float *in, float *out, int n)
{
    __shared__ float sums[256];
    float total = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        total += in[i];
    sums[threadIdx.x] = total;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = sums[0];
}

extern "C" __global__ void vector_add(const float *x, const float *y, float *z, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        z[i] = x[i] + y[i];
}

extern "C" __global__ void collatz(int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long value = i + 1;
    int count = 0;
    while (value != 1) {
        if (value % 2)
            value = 3 * value + 1;
        else
            value /= 2;
        count++;
    }
    steps[i] = count;
}

extern "C" __global__ void softmax(const float *in, float *out, int columns)
{
    __shared__ float shared[256];
    const float *x = in + blockIdx.x * columns;
    float most = x[threadIdx.x];
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        most = fmaxf(most, x[i]);
    shared[threadIdx.x] = most;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    most = shared[0];
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += expf(x[i] - most);
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    sum = shared[0];
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[blockIdx.x * columns + i] = expf(x[i] - most) / sum;
}
