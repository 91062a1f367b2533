// Convolutions with taps in constant memory, the cosine transform of 8x8 blocks, and the Fourier transform.

__constant__ float taps[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
__constant__ int sharpen[3][3] = {{0, -1, 0}, {-1, 5, -1}, {0, -1, 0}};

// Tap by tap from shared memory with a halo; zeros outside.
extern "C" __global__ void convolve_line(const float* in, float* out, int n) {
    __shared__ float line[64 + 4];
    int first = blockIdx.x * 64 - 2;
    for (int k = threadIdx.x; k < 68; k += blockDim.x) line[k] = first + k >= 0 && first + k < n ? in[first + k] : 0;
    __syncthreads();
    int i = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 5; k++) sum = fmaf(taps[k], line[threadIdx.x + k], sum);
    if (i < n) out[i] = sum;
}

// One pass of a separable filter: along x (step 1) or along y (step = width); edges repeat.
extern "C" __global__ void convolve_axis(const float* in, float* out, int width, int height, bool along_y) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int k = -2; k <= 2; k++) {
        int sx = along_y ? x : min(max(x + k, 0), width - 1), sy = along_y ? min(max(y + k, 0), height - 1) : y;
        sum += taps[k + 2] * __ldg(&in[sy * width + sx]);
    }
    out[y * width + x] = sum;
}

// An image of bytes in four channels, sharpened with saturation.
extern "C" __global__ void sharpen_image(const uchar4* in, uchar4* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int3 sum = make_int3(0, 0, 0);
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++) {
            int sx = x + i - 1, sy = y + j - 1;
            if (sx < 0 || sy < 0 || sx >= width || sy >= height) continue;
            uchar4 pixel = in[sy * width + sx];
            int weight = sharpen[j][i];
            sum.x += weight * pixel.x; sum.y += weight * pixel.y; sum.z += weight * pixel.z;
        }
    auto byte = [](int v) { return (unsigned char)max(0, min(255, v)); };
    out[y * width + x] = make_uchar4(byte(sum.x), byte(sum.y), byte(sum.z), in[y * width + x].w);
}

// The cosine transform (type II, orthonormal) of 8x8 pixels a block, rows and then columns.
extern "C" __global__ void dct_8x8(const float* in, float* out, int width) {
    __shared__ float pixels[8][9], rows[8][9];
    int u = threadIdx.x, v = threadIdx.y, at = (blockIdx.y * 8 + v) * width + blockIdx.x * 8 + u;
    pixels[v][u] = in[at];
    __syncthreads();
    float sum = 0, scale = u ? 0.5f : 0.35355339f;
    for (int x = 0; x < 8; x++) sum += pixels[v][x] * cospif((2 * x + 1) * u / 16.0f);
    rows[v][u] = scale * sum;
    __syncthreads();
    sum = 0;
    scale = v ? 0.5f : 0.35355339f;
    for (int y = 0; y < 8; y++) sum += rows[y][u] * cospif((2 * y + 1) * v / 16.0f);
    out[at] = scale * sum;
}

// Fourier transform, radix 2, in shared memory: bits reversed on load, then one butterfly per thread and stage.
extern "C" __global__ void fft(float2* data, int log_n, float sign) {
    extern __shared__ float2 work[];
    int n = 1 << log_n, t = threadIdx.x;
    float2* mine = data + blockIdx.x * n;
    for (int i = t; i < n; i += blockDim.x) work[__brev(i) >> (32 - log_n)] = mine[i];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        for (int k = t; k < n / 2; k += blockDim.x) {
            int in_group = k & (half - 1), low = 2 * k - in_group, high = low + half;
            float c, s;
            sincospif(sign * in_group / half, &s, &c);
            float2 a = work[low], b = work[high];
            float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
            work[low] = make_float2(a.x + turned.x, a.y + turned.y);
            work[high] = make_float2(a.x - turned.x, a.y - turned.y);
        }
    }
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) mine[i] = work[i];
}
