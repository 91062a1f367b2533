// Streams of doubles, one element for each thread. The grid covers the arrays exactly, unless there is an `n`.

#define I (blockIdx.x * (long)blockDim.x + threadIdx.x)

extern "C" __global__ void init(double *a, const double *b, const double *c) { a[I] = 1.5; }

// The condition is never true, but the compiler can't know: the load stays.
extern "C" __global__ void read(double *a, const double *b, const double *c)
{
    if (b[I] == 3.25)
        a[I] = 1.0;
}

extern "C" __global__ void scale(double *a, const double *b, const double *c) { a[I] = b[I] * 3.25; }

extern "C" __global__ void triad(double *a, const double *b, const double *c) { a[I] = b[I] + c[I] * 3.25; }

extern "C" __global__ void scale_some(double *a, const double *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = b[i] * 0.25;
}

extern "C" __global__ void nothing() {}

// Block b reads piece b % pieces of the data; a piece is `loads` doubles for each thread, interleaved with those of other pieces.
template <int LOADS> __global__ void read_pieces(const double *a, double *out, int pieces)
{
    double sum = 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        sum += a[(i * pieces + blockIdx.x % pieces) * blockDim.x + threadIdx.x];
    if (sum == 3.25)
        *out = sum;
}
