// The standard library that comes with CUDA, and templates computed by the compiler.

#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>

// A recursive template and a fold, both done by the compiler.
template <int N> struct Factorial { static constexpr long long value = N * Factorial<N - 1>::value; };
template <> struct Factorial<0> { static constexpr long long value = 1; };
template <typename... T> __device__ auto sum_of(T... x) { return (x + ...); }

extern "C" __global__ void folds(long long* out) {
    auto triple = cuda::std::make_tuple(3, 4.5, 'a');
    out[0] = Factorial<15>::value;
    out[1] = sum_of(1, 2LL, 3u, (short)4);
    out[2] = (long long)(cuda::std::get<1>(triple) * 2) + cuda::std::get<2>(triple);
    out[3] = cuda::std::numeric_limits<int>::min();
    out[4] = cuda::std::is_same<decltype(sum_of(1, 2.0f)), float>::value;
    if constexpr (sizeof(void*) == 8) out[5] = 64; else out[5] = 32;
}

// Complex numbers of the library, double precision: Newton's method for the third roots of one.
extern "C" __global__ void roots(const double2* start, int* root, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::std::complex<double> z(start[i].x, start[i].y);
    for (int k = 0; k < 30; k++) z -= (z * z * z - 1.0) / (3.0 * z * z);
    root[i] = z.real() > 0 ? 0 : z.imag() > 0 ? 1 : 2;
}
