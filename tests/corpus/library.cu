// The standard library that comes with CUDA.

#include <cuda/std/complex>

// Complex numbers of the library, double precision: Newton's method for the third roots of one.
extern "C" __global__ void roots(const double2* start, int* root, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::std::complex<double> z(start[i].x, start[i].y);
#pragma unroll 1
    for (int k = 0; k < 30; k++) {
        auto slope = 3.0 * z * z;
        z -= (z * z * z - 1.0) * cuda::std::conj(slope) * (1 / cuda::std::norm(slope));
    }
    root[i] = z.real() > 0 ? 0 : z.imag() > 0 ? 1 : 2;
}
