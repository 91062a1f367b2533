// Kernels on the tensor cores: one product of fragments, and matrix multiplications as people write them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

template <class T> struct stored { using type = T; };
template <> struct stored<wmma::precision::tf32> { using type = float; };
template <> struct stored<wmma::experimental::precision::s4> { using type = int; };
template <> struct stored<wmma::experimental::precision::u4> { using type = int; };
template <> struct stored<wmma::experimental::precision::b1> { using type = unsigned; };

// One warp, one product: strides in elements, C and D by rows or by columns.
template <class T, class Sum, int M, int N, int K, class LayoutA, class LayoutB, bool by_row>
__global__ void product(const void *a, const void *b, const Sum *c, Sum *d, int lda, int ldb, int ldc) {
    using Stored = typename stored<T>::type;
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> left;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    constexpr auto order = by_row ? wmma::mem_row_major : wmma::mem_col_major;
    wmma::load_matrix_sync(left, (const Stored *)a, lda);
    wmma::load_matrix_sync(right, (const Stored *)b, ldb);
    wmma::load_matrix_sync(sum, c, ldc, order);
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(d, sum, ldc, order);
}

template <bool exclusive>
__global__ void bits(const unsigned *a, const unsigned *b, int *d) {
    using namespace wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
    wmma::fill_fragment(sum, 5);
    wmma::load_matrix_sync(left, a, 128);
    wmma::load_matrix_sync(right, b, 128);
    wmma::bmma_sync(sum, left, right, sum, exclusive ? bmmaBitOpXOR : bmmaBitOpAND);
    wmma::store_matrix_sync(d, sum, 8, wmma::mem_row_major);
}

// A copy of a tile through shared memory and generic pointers: the same bytes must come out.
__global__ void through_shared(const __half *a, __half *out) {
    __shared__ __half tile[16 * 24];
    for (int i = threadIdx.x; i < 256; i += 32) tile[i / 16 * 24 + i % 16] = a[i];
    __syncwarp();
    const __half *chosen = a[0] == a[1] ? a : tile; // a pointer that may lie anywhere
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(sum, __float2half(0));
    wmma::load_matrix_sync(left, chosen, 24);
    wmma::load_matrix_sync(right, tile, 24);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(tile, sum, 24, wmma::mem_col_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) out[i] = tile[i / 16 * 24 + i % 16];
}

// C = A B for row-major halves: 32 x 32 tiles, two warps, shared memory with rows of 64 bytes whose 16-byte chunks are
// permuted by the row so that ldmatrix meets no bank twice.
__device__ int swizzled(int row, int chunk) { return row * 64 + ((chunk ^ (row >> 1)) & 3) * 16; }

extern "C" __global__ void swizzled_gemm(const __half *a, const __half *b, float *c, int n) {
    __shared__ __align__(128) unsigned char left[32 * 64], right[32 * 64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += 32) {
        for (int i = threadIdx.x; i < 128; i += blockDim.x) {
            int row = i / 4, chunk = i % 4;
            *(uint4 *)(left + swizzled(row, chunk)) = *(const uint4 *)(a + (row0 + row) * n + k0 + chunk * 8);
            *(uint4 *)(right + swizzled(row, chunk)) = *(const uint4 *)(b + (k0 + row) * n + column0 + chunk * 8);
        }
        __syncthreads();
        for (int k = 0; k < 32; k += 16) {
            unsigned fa[4], fb[4][2];
            unsigned where = __cvta_generic_to_shared(left + swizzled(warp * 16 + lane % 16, k / 8 + lane / 16));
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(where));
            for (int j = 0; j < 4; j++) {
                where = __cvta_generic_to_shared(right + swizzled(k + lane % 16, j));
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1]) : "r"(where));
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                             "{%0,%1,%2,%3};" : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[j][0]), "r"(fb[j][1]));
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; j++)
        for (int half = 0; half < 2; half++) {
            float *target = c + (row0 + warp * 16 + lane / 4 + 8 * half) * n + column0 + j * 8 + lane % 4 * 2;
            *(float2 *)target = make_float2(sum[j][2 * half], sum[j][2 * half + 1]);
        }
}
