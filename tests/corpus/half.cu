// Half precision and bfloat16.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// y = A x with half-precision A and x, two at a time, summed in single precision; a warp a row.
extern "C" __global__ void gemv_half(const __half2* A, const __half2* x, __half* y, int rows, int pairs) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0;
    for (int i = threadIdx.x; i < pairs; i += 32) {
        float2 product = __half22float2(__hmul2(A[row * pairs + i], x[i]));
        sum += product.x + product.y;
    }
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0) y[row] = __float2half(sum);
}

#if __CUDA_ARCH__ >= 800  // older ones have no arithmetic on bfloat16
// bfloat16: gated sums, in its own arithmetic, with conversion and comparison.
extern "C" __global__ void gate_bfloat(const __nv_bfloat16* x, const float* gate, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 g = __float2bfloat16(gate[i]), value = __hfma(x[i], g, __float2bfloat16(0.5f));
    out[i] = __hgt(value, __float2bfloat16(1.0f)) ? __hsub(value, g) : __hmul(value, value);
}
#endif
