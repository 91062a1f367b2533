// Kernels on which the compiled engine is held to the interpreter: divergence, barriers, shuffles, atomics, borders.
#define TILE 16

extern "C" __global__ void vector_add(const float4 *a, const float4 *b, float4 *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}

extern "C" __global__ void transpose(const float *a, float *b, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) b[x * n + y] = a[y * n + x];
}

extern "C" __global__ void tiled_matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void reduce(const float *a, float *out, int n) {
    __shared__ float partial[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; w++) sum += partial[w];
        out[blockIdx.x] = sum;
    }
}

extern "C" __global__ void histogram(const unsigned *a, unsigned *bins, int n) {
    __shared__ unsigned local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[a[i] % 64], 1u);
    __syncthreads();
    if (threadIdx.x < 64 && local[threadIdx.x]) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

extern "C" __global__ void iterate(int *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cr = -2 + 3.f * x / width, ci = -1.5f + 3.f * y / height, a = 0, b = 0;
    int k = 0;
    while (k < 20 && a * a + b * b < 4) {
        float t = a * a - b * b + cr;
        b = 2 * a * b + ci;
        a = t;
        k++;
    }
    out[y * width + x] = k;
}

// i - 1 wraps in the first warp, which no affine 32-bit index survives: that warp bails out.
extern "C" __global__ void stencil(const float *a, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (i < n) {
        if (i - 1 < n) sum += a[i - 1];
        sum += a[i];
        if (i + 1 < n) sum += a[i + 1];
        out[i] = sum;
    }
}

extern "C" __global__ void choose(const int *a, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0;
    for (int k = 0; k < 5; k++) {
        switch ((a[i] + k) & 7) {
            case 0: r += 1; break;
            case 1: r *= 3; break;
            case 2: r -= k;
            case 3: r ^= i; break;
            case 4: if (r > 5) continue; r += 9; break;
            case 5: r = r * r; break;
            default: r += k;
        }
        if (r > 1000) break;
    }
    out[i] = r + __popc(__ballot_sync(~0u, r & 1));
}

extern "C" __global__ void spill(const int *a, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double kept[12];
    for (int k = 0; k < 12; k++) kept[(k * 7 + i) % 12] = k * i;
    double sum = 0;
    for (int k = 0; k < 12; k++) sum += kept[a[(i + k) & 63] % 12] * k;
    out[i] = sum;
}

extern "C" __global__ void spin(volatile int *flag) {
    while (flag[0] == 0);
    flag[1] = 1;
}

extern "C" __global__ void count_up(volatile int *flag) {
    while (flag[0] == 0) flag[1] = flag[1] + 1;
}

// The sign bit of an affine value: one for all lanes of a warp, until a warp has lanes of both signs.
extern "C" __global__ void sign_bits(unsigned *out, int origin) {
    int x = threadIdx.x - origin;
    out[threadIdx.x] = (x & 0x80000000u) >> 5 | (x >> 31 & 7);
}

extern "C" __global__ void copy_rows(const float *a, float *b, const double *c, double *d, int pitch) {
    int i = blockIdx.x * blockDim.x + threadIdx.y * pitch + threadIdx.x;
    b[i] = a[i] - a[i + 16 * pitch / 4];
    d[i] = c[i] - c[i + 16];
}
