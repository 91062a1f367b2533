// Kernels whose control flow depends on indices and parameters alone, so that their SASS can be followed by hand.

extern "C" __global__ void ragged(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < i % 7; k++) s += x[k];
    if (i < n) y[i] = s;
}
extern "C" __global__ void triangle(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k <= i; k++) s += x[k] * x[i - k];
    y[i] = s;
}
extern "C" __global__ void nested(const float *x, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < m; b++) s += x[a * m + b] * s;
        y[a * 64 + i] = s;
    }
}
extern "C" __global__ void nested3(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < 5; b++)
            for (int c = 0; c < 3; c++) s += x[(a * 5 + b) * 3 + c];
    y[i] = s;
}
extern "C" __global__ void branches(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (i % 32 < 8) v = v * v * 3; 
    else if (i % 3 == 0) { v = v * v + 1; v = v * v * v + 2; y[i + n] = v; }
    for (int k = 0; k < 10; k++) { if (k % 2) continue; v += x[k]; if (k > 6 && i > 40) break; }
    switch (i % 5) { case 0: v += 1; y[i+n]=2; break; case 1: v *= 2; y[i+n]=v; break; case 2: v = 3; break; case 3: y[i+n] = 9*v; break; case 4: v=5; }
    y[i] = v;
}
extern "C" __global__ void stencil(const float *x, float *y, int n) {
    __shared__ float t[128 + 6];
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = threadIdx.x;
    t[k + 3] = i < n ? x[i] : 0;
    if (k < 3) { t[k] = i >= 3 ? x[i - 3] : 0; t[k + 131] = i + 128 < n ? x[i + 128] : 0; }
    __syncthreads();
    float s = 0;
    for (int j = -3; j <= 3; j++) s += t[k + 3 + j] * (j + 4);
    if (i < n) y[i] = s;
}
extern "C" __global__ void gridstride(const float *x, float *y, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void histogram(const int *x, int *y, int n) {
    __shared__ int h[64];
    if (threadIdx.x < 64) h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[x[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&y[threadIdx.x], h[threadIdx.x]);
}
extern "C" __global__ void local(const float *x, float *y, int n, int m) {
    float a[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 32; k++) a[k] = x[i + k];
    for (int r = 0; r < n; r++) { int j = (r * m + i) & 31; a[j] = a[j] + 1.0f; }
    float s = 0;
    for (int k = 0; k < 32; k++) s += a[k] * k;
    y[i] = s;
}
extern "C" __global__ void integers(int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = i;
    for (int k = 0; k < n; k++) { h = h * 1664525u + 1013904223u; h ^= h >> 13; }
    y[i] = h;
}
extern "C" __global__ void collatz(int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1, steps = 0;
    unsigned v = i;
    while (v != 1 && steps < n) { v = v % 2 ? 3 * v + 1 : v / 2; steps++; }
    y[i - 1] = steps;
}
extern "C" __global__ void register_tile(const float *a, const float *b, float *c, int n) {
    __shared__ float as[8][64], bs[8][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    float acc[4][4] = {};
    for (int k = 0; k < n; k += 8) {
        for (int j = 0; j < 2; j++) { as[t / 64 + 4 * j][t % 64] = a[(k + t / 64 + 4 * j) * 64 + t % 64]; bs[t / 64 + 4 * j][t % 64] = b[(k + t / 64 + 4 * j) * 64 + t % 64]; }
        __syncthreads();
        for (int kk = 0; kk < 8; kk++) {
            float ra[4], rb[4];
            for (int j = 0; j < 4; j++) { ra[j] = as[kk][ty * 4 + j]; rb[j] = bs[kk][tx * 4 + j]; }
            for (int p = 0; p < 4; p++) for (int q = 0; q < 4; q++) acc[p][q] += ra[p] * rb[q];
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; p++) for (int q = 0; q < 4; q++) c[(ty * 4 + p) * 64 + tx * 4 + q] = acc[p][q];
}
__device__ float horner(float x, const float *c, int n) { float s = 0; for (int k = 0; k < n; k++) s = s * x + c[k]; return s; }
extern "C" __global__ void inlined(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = horner(x[i], x, n);
    if (i & 1) v = horner(v, x + 7, 2 * n);
    y[i] = v / 3.7f;
}
