// Tensor cores: products by warps, with the wmma interface and with the instructions below it.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// C = A B + C in tiles of 16 x 16 x 16, a warp a tile; sizes are multiples of 16.
extern "C" __global__ void product_wmma(const __half* A, const __half* B, float* C, int m, int n, int k) {
    int tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, across = n / 16;
    if (tile >= m / 16 * across) return;
    int row = tile / across * 16, column = tile % across * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(c, C + row * n + column, n, wmma::mem_row_major);
    for (int p = 0; p < k; p += 16) {
        wmma::load_matrix_sync(a, A + row * k + p, k);
        wmma::load_matrix_sync(b, B + p * n + column, n);
        wmma::mma_sync(c, a, b, c);
    }
    for (int i = 0; i < c.num_elements; i++) c.x[i] *= 0.5f;
    wmma::store_matrix_sync(C + row * n + column, c, n, wmma::mem_row_major);
}

// Signed bytes, column-major B, sums of 32 bits.
extern "C" __global__ void product_bytes(const signed char* A, const signed char* B, int* C) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> c;
    wmma::fill_fragment(c, 1000);
    wmma::load_matrix_sync(a, A, 16);
    wmma::load_matrix_sync(b, B, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}

// 16 x 8 x 16 by mma.sync, fragments read by hand: rows of A by lane / 4, columns by lane % 4 (PTX ISA, m16n8k16).
extern "C" __global__ void product_mma(const __half* A, const __half* B, float* C) {
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4;
    auto pair = [](const __half* low, const __half* high) {
        return (unsigned)__half_as_ushort(*high) << 16 | __half_as_ushort(*low);
    };
    unsigned a[4], b[2];
    for (int i = 0; i < 4; i++) {
        const __half* at = A + (group + i % 2 * 8) * 16 + in_group * 2 + i / 2 * 8;
        a[i] = pair(at, at + 1);
    }
    for (int i = 0; i < 2; i++) {
        const __half* at = B + (in_group * 2 + i * 8) * 8 + group;
        b[i] = pair(at, at + 8);
    }
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; i++) C[(group + i / 2 * 8) * 8 + in_group * 2 + i % 2] = c[i];
}

// The same with A by ldmatrix from shared memory, where cp.async has brought it.
extern "C" __global__ void product_ldmatrix(const __half* A, const __half* B, float* C) {
    __shared__ __align__(16) __half a_tile[16 * 16], b_tile[16 * 8];
    int lane = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(a_tile + lane * 8);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(A + lane * 8));
    if (lane < 16) {
        to = (unsigned)__cvta_generic_to_shared(b_tile + lane * 8);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(to), "l"(B + lane * 8));
    }
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    unsigned a[4], b[2];
    unsigned from = (unsigned)__cvta_generic_to_shared(a_tile + (lane % 16) * 16 + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from));
    from = (unsigned)__cvta_generic_to_shared(b_tile + (lane % 16) * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(from));
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; i++) C[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
}
