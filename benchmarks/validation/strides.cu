// Loads that hit L1, at a stride. The eight offsets are those of te42kyfo/gpu-benches, gpu-strides.

template <typename T> __global__ void walk(const T *a, T *out, int stride, int loads, int zero)
{
    const T *b = a + threadIdx.x % 64 * stride;
    T sum = 0;
#pragma unroll 1
    for (int i = 0; i < loads; i += 8) {
        b += zero;
        sum += b[0] * b[4];
        sum += b[8] * b[12];
        sum += b[20] * b[16];
        sum += b[24] * b[28];
    }
    // Never true, but the compiler can't know: the loads stay.
    if (sum == T(0.3))
        *out = sum;
}
