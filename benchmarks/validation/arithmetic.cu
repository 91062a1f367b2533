// Chains of arithmetic, and arithmetic on data from DRAM.

// ILP chains of multiply-adds that depend on each other. `steps` is a multiple of 32.
template <typename T, int ILP> __global__ void multiply_add(T *out, T a, T b, int steps)
{
    T v[ILP];
    for (int k = 0; k < ILP; k++)
        v[k] = a + k;
    for (int i = 0; i < steps; i += 32)
#pragma unroll
        for (int j = 0; j < 32; j++)
#pragma unroll
            for (int k = 0; k < ILP; k++)
                v[k] = v[k] * a + b;
    T sum = 0;
    for (int k = 0; k < ILP; k++)
        sum += v[k];
    out[threadIdx.x] = sum;
}

template <int ILP> __global__ void divide(double *out, double a, double b, int steps)
{
    double v[ILP];
    for (int k = 0; k < ILP; k++)
        v[k] = a + k;
    for (int i = 0; i < steps; i++)
#pragma unroll
        for (int k = 0; k < ILP; k++)
            v[k] = b / v[k];
    double sum = 0;
    for (int k = 0; k < ILP; k++)
        sum += v[k];
    out[threadIdx.x] = sum;
}

template <int ILP> __global__ void root(double *out, double a, double b, int steps)
{
    double v[ILP];
    for (int k = 0; k < ILP; k++)
        v[k] = a + k;
    for (int i = 0; i < steps; i++)
#pragma unroll
        for (int k = 0; k < ILP; k++)
            v[k] = sqrt(v[k]);
    double sum = 0;
    for (int k = 0; k < ILP; k++)
        sum += v[k];
    out[threadIdx.x] = sum;
}

// Four chains of powers of two, which the special function units compute.
extern "C" __global__ void exponentials(float *out, float a, int steps)
{
    float v[4] = {a, a + 1, a + 2, a + 3};
    for (int i = 0; i < steps; i += 32)
#pragma unroll
        for (int j = 0; j < 32; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v[k]));
    out[threadIdx.x] = v[0] + v[1] + v[2] + v[3];
}

// Each thread loads `pairs` pairs of floats, two at a time, and makes FMAS multiply-adds with three different sources of each.
template <int FMAS> __global__ void intensity(const float *a, const float *b, float *out, int pairs)
{
    const float *mine_a = a + (long)blockIdx.x * blockDim.x * pairs + threadIdx.x;
    const float *mine_b = b + (long)blockIdx.x * blockDim.x * pairs + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < pairs; i += 2) {
        float x = mine_a[i * blockDim.x], y = mine_b[i * blockDim.x], v = x - y;
        float s = mine_a[(i + 1) * blockDim.x], t = mine_b[(i + 1) * blockDim.x], w = s - t;
#pragma unroll
        for (int j = 0; j < FMAS; j++) {
            v = v * x - y;
            w = w * s - t;
        }
        sum += v + w;
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
