// The language: templates, lambdas, operators, constexpr, unions, bit fields, tables of cases, variables of the module.

// A kernel that applies what it is given, in any type: a functor whose state is an argument of the kernel.
template <typename T> struct Clamp {
    T low, high;
    __device__ T operator()(T x) const { return x < low ? low : x > high ? high : x; }
};
template <typename T> struct Polynomial {
    T c[4];
    __device__ T operator()(T x) const { return ((c[3] * x + c[2]) * x + c[1]) * x + c[0]; }
};
template <typename T, typename F> __global__ void transform(const T* in, T* out, int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(in[i]);
}

// A recursive template and a fold, both done by the compiler.
template <int N> struct Factorial { static constexpr long long value = N * Factorial<N - 1>::value; };
template <> struct Factorial<0> { static constexpr long long value = 1; };
template <typename A, typename B> struct Same { static constexpr bool value = false; };
template <typename A> struct Same<A, A> { static constexpr bool value = true; };
template <typename... T> __device__ auto sum_of(T... x) { return (x + ...); }

extern "C" __global__ void folds(long long* out) {
    out[0] = Factorial<15>::value;
    out[1] = sum_of(1, 2LL, 3u, (short)4);
    out[2] = Same<decltype(sum_of(1, 2.0f)), float>::value;
    if constexpr (sizeof(void*) == 8) out[3] = 64; else out[3] = 32;
}

// A matrix class with operators, a static function and a base class.
struct Named { int id = 7; __device__ int tag() const { return id; } };
struct Matrix2 : Named {
    float m[2][2];
    __device__ static Matrix2 rotation(float turns) { Matrix2 r; r.m[0][0] = r.m[1][1] = cospif(2 * turns); r.m[1][0] = sinpif(2 * turns); r.m[0][1] = -r.m[1][0]; return r; }
    __device__ Matrix2 operator*(const Matrix2& o) const {
        Matrix2 r;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) r.m[i][j] = m[i][0] * o.m[0][j] + m[i][1] * o.m[1][j];
        return r;
    }
    __device__ float& operator()(int i, int j) { return m[i][j]; }
};
extern "C" __global__ void rotate(float2* points, int n, float turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Matrix2 r = Matrix2::rotation(turns) * Matrix2::rotation(turns * (i & 1));
    float2 p = points[i];
    points[i] = make_float2(r(0, 0) * p.x + r(0, 1) * p.y, r(1, 0) * p.x + r(1, 1) * p.y + r.tag() - 7);
}

// Unions and bit fields: a float taken apart and put together again; fields of odd widths with signs.
union Bits { float value; unsigned word; unsigned char bytes[4]; };
struct Packed { unsigned a : 5; int b : 7; unsigned c : 20; };
extern "C" __global__ void take_apart(const float* x, int* exponent, unsigned* fraction, float* swapped, Packed* packed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Bits bits{x[i]};
    exponent[i] = (int)(bits.word >> 23 & 255) - 127;
    fraction[i] = bits.word & 0x7fffff;
    Bits other;
    for (int k = 0; k < 4; k++) other.bytes[k] = bits.bytes[3 - k];
    swapped[i] = other.value;
    Packed p = packed[i];
    p.a += 3; p.b -= 40; p.c ^= 0xfffff;
    packed[i] = p;
}

// A small machine: programs are bytes, each thread runs the same program on its own stack; a dense table of cases.
extern "C" __global__ void run_program(const unsigned char* code, const int* inputs, int* outputs, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[8], top = 0;
    for (int pc = 0;;) switch (code[pc++]) {
        case 0: outputs[i] = stack[0]; return;
        case 1: stack[top++] = (signed char)code[pc++]; break;
        case 2: stack[top++] = inputs[i]; break;
        case 3: top--; stack[top - 1] += stack[top]; break;
        case 4: top--; stack[top - 1] *= stack[top]; break;
        case 5: stack[top] = stack[top - 1]; top++; break;
        case 6: top--; if (stack[top] > 0) pc += (signed char)code[pc]; else pc++; break;
        case 7: { int t = stack[top - 1]; stack[top - 1] = stack[top - 2]; stack[top - 2] = t; break; }
        case 8: stack[top - 1] = stack[top - 1] % 1000; break;
        case 9: stack[top - 1] = -stack[top - 1]; break;
        default: outputs[i] = -12345; return;
    }
}

// Variables of the module: counters that stay from launch to launch, constants, a pointer to another variable, a table.
__device__ unsigned long long launches = 5;
__device__ int history[4] = {1, 2, 3};
__device__ int* where = &history[1];
__constant__ struct { short weight; double factor; } setting = {-3, 0.5};
static __device__ __managed__ int managed_sum;
extern "C" __global__ void remember(double* out) {
    __shared__ static int once;
    if (threadIdx.x == 0) { once = 11; atomicAdd(&launches, 1ull); where[2] = where[0] * 10; managed_sum += 2; }
    __syncthreads();
    if (threadIdx.x == 1) {
        out[0] = launches; out[1] = history[3]; out[2] = setting.weight * setting.factor; out[3] = once; out[4] = managed_sum;
    }
}

// Several arrays of different types in one dynamic shared allocation.
extern "C" __global__ void share_parts(const double* in, short* order, double* sums, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    double* values = reinterpret_cast<double*>(raw);
    int* ranks = reinterpret_cast<int*>(values + n);
    short* back = reinterpret_cast<short*>(ranks + n);
    char* odd = reinterpret_cast<char*>(back + n);
    int i = threadIdx.x;
    if (i < n) { values[i] = in[i]; ranks[i] = 0; }
    __syncthreads();
    if (i < n) for (int j = 0; j < n; j++) if (values[j] < values[i] || (values[j] == values[i] && j < i)) ranks[i]++;
    if (i < n) { back[ranks[i]] = i; odd[i] = ranks[i] & 1; }
    __syncthreads();
    if (i < n) { order[i] = back[i]; sums[i] = i ? values[back[i]] - values[back[i - 1]] : odd[back[0]]; }
}

// 64-bit atomics of all kinds, on global and on shared memory.
extern "C" __global__ void atomics_64(unsigned long long* u, long long* s, double* d, int n) {
    __shared__ unsigned long long most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long big = 0x123456789abcdefull * (i + 1);
        atomicMax(&most, big);
        atomicAdd(&u[0], big); atomicXor(&u[1], big); atomicAnd(&u[2], ~(1ull << i)); atomicOr(&u[3], 1ull << (i + 20));
        atomicMin(&s[0], -(long long)big); atomicMax(&s[1], (long long)i - 7);
        atomicAdd(&d[0], 0.25 * i);
        unsigned long long* cell = reinterpret_cast<unsigned long long*>(&d[1]);
        for (unsigned long long old = *cell, seen;; old = seen) {
            seen = atomicCAS(cell, old, (unsigned long long)__double_as_longlong(__longlong_as_double(old) * 1.5));
            if (seen == old) break;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&u[4], most);
}
