// Kernels that print and assert.

#include <cassert>
#include <cstdio>

extern "C" __global__ void report(const float* x, const char* names, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    if (i % 2) printf("%s %d: %6.2f|%-8.3e|%c|%5u|%#x|%lld|%%\n", i > 2 ? "late" : "early", i, x[i], (double)x[i], names[i], 7u * i, 255 * i, -1ll << (40 + i));
    else printf("even\n");
}

extern "C" __global__ void insist(const int* x, int limit, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) assert(x[i] < limit && "values stay below the limit");
}
