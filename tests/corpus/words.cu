// Whole numbers: hash tables, checksums, string search, big integers, 128 bits, tables of bytes.

// Inserts keys into an open hash table with CAS; what is there already keeps its place and adds up its count.
extern "C" __global__ void table_insert(const unsigned* keys, int n, unsigned long long* slots, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long mine = (unsigned long long)keys[i] << 32 | 1, empty = ~0ull;
    for (unsigned slot = keys[i] * 2654435761u >> 7 & mask;; slot = (slot + 1) & mask) {
        unsigned long long there = atomicCAS(&slots[slot], empty, mine);
        if (there == empty) return;
        if (there >> 32 == keys[i]) { atomicAdd(&slots[slot], 1ull); return; }
    }
}

extern "C" __global__ void table_find(const unsigned* keys, int n, const unsigned long long* slots, unsigned mask, int* counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    counts[i] = 0;
    for (unsigned slot = keys[i] * 2654435761u >> 7 & mask; slots[slot] != ~0ull; slot = (slot + 1) & mask)
        if (slots[slot] >> 32 == keys[i]) { counts[i] = (int)slots[slot]; break; }
}

// CRC-32 of a message a thread, four bits at a time, the table computed by the compiler.
struct NibbleTable {
    unsigned entries[16];
    __device__ constexpr NibbleTable() : entries() {
        for (unsigned i = 0; i < 16; i++) {
            unsigned value = i;
            for (int k = 0; k < 4; k++) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
            entries[i] = value;
        }
    }
};
__constant__ NibbleTable crc_table{};

extern "C" __global__ void crc32(const unsigned char* text, const int* starts, unsigned* sums, int messages) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= messages) return;
    unsigned sum = ~0u;
    for (int i = starts[m]; i < starts[m + 1]; i++) {
        sum = sum >> 4 ^ crc_table.entries[(sum ^ text[i]) & 15];
        sum = sum >> 4 ^ crc_table.entries[(sum ^ text[i] >> 4) & 15];
    }
    sums[m] = ~sum;
}

// Every place where a pattern of at most 8 bytes with '?' for any byte begins.
extern "C" __global__ void find_pattern(const char* text, int n, unsigned long long pattern, unsigned long long mask, int length, int* places, int* found) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + length > n) return;
    unsigned long long window = 0;
    memcpy(&window, text + i, min(8, n - i));
    if (((window ^ pattern) & mask) == 0) places[atomicAdd(found, 1)] = i;
}

// Sums of many 256-bit numbers with a carry chain; limbs of 32 bits, least first.
extern "C" __global__ void add_256(const unsigned* a, const unsigned* b, unsigned* sum, unsigned* carry, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned *x = a + 8 * i, *y = b + 8 * i;
    unsigned *s = sum + 8 * i, out;
    asm volatile(
        "add.cc.u32 %0, %9, %17;\n\taddc.cc.u32 %1, %10, %18;\n\taddc.cc.u32 %2, %11, %19;\n\taddc.cc.u32 %3, %12, %20;\n\t"
        "addc.cc.u32 %4, %13, %21;\n\taddc.cc.u32 %5, %14, %22;\n\taddc.cc.u32 %6, %15, %23;\n\taddc.cc.u32 %7, %16, %24;\n\t"
        "addc.u32 %8, 0, 0;"
        : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]), "=r"(s[4]), "=r"(s[5]), "=r"(s[6]), "=r"(s[7]), "=r"(out)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
          "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    carry[i] = out;
}

// Products of big numbers in limbs of 64 bits, school method: one thread a column pair of numbers.
template <int LIMBS>
__global__ void multiply_big(const unsigned long long* a, const unsigned long long* b, unsigned long long* product, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long sum[2 * LIMBS] = {};
    for (int j = 0; j < LIMBS; j++) {
        unsigned long long carry = 0;
        for (int k = 0; k < LIMBS; k++) {
            unsigned long long x = a[i * LIMBS + j], y = b[i * LIMBS + k], low = x * y, high = __umul64hi(x, y);
            low += carry; high += low < carry;
            low += sum[j + k]; high += low < sum[j + k];
            sum[j + k] = low;
            carry = high;
        }
        sum[j + LIMBS] = carry;
    }
    for (int j = 0; j < 2 * LIMBS; j++) product[i * 2 * LIMBS + j] = sum[j];
}

// Powers modulo a 64-bit number by way of 128-bit integers.
extern "C" __global__ void power_modulo(const unsigned long long* base, unsigned long long exponent, unsigned long long modulus,
                                        unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 result = 1, factor = base[i] % modulus;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = result * factor % modulus;
        factor = factor * factor % modulus;
    }
    out[i] = (unsigned long long)result;
}

// A cipher's round on 16 bytes: substitute by a table in shared memory, shift rows, mix columns in GF(2^8), add the key.
extern "C" __global__ void cipher_round(const uchar4* blocks, const unsigned char* table, const uchar4* key, uchar4* out, int n) {
    __shared__ unsigned char box[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) box[k] = table[k];
    __syncthreads();
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 4, column = threadIdx.x & 3;
    if (i >= n) return;
    const uchar4* in = blocks + 4 * i;
    unsigned char a = box[in[column].x], b = box[in[(column + 1) & 3].y], c = box[in[(column + 2) & 3].z], d = box[in[(column + 3) & 3].w];
    auto twice = [](unsigned char v) { return (unsigned char)(v << 1 ^ (v & 0x80 ? 0x1b : 0)); };
    unsigned char all = a ^ b ^ c ^ d;
    uchar4 k = key[column];
    out[4 * i + column] = make_uchar4(a ^ all ^ twice(a ^ b) ^ k.x, b ^ all ^ twice(b ^ c) ^ k.y, c ^ all ^ twice(c ^ d) ^ k.z,
                                      d ^ all ^ twice(d ^ a) ^ k.w);
}
