// Calls that stay calls: recursion, pointers to functions, virtual functions.

// Quicksort that calls itself; one thread a row.
__device__ __noinline__ void sort_range(int* row, int low, int high) {
    if (low >= high) return;
    int pivot = row[high], place = low;
    for (int j = low; j < high; j++)
        if (row[j] < pivot) { int t = row[place]; row[place++] = row[j]; row[j] = t; }
    int t = row[place]; row[place] = row[high]; row[high] = t;
    sort_range(row, low, place - 1);
    sort_range(row, place + 1, high);
}

extern "C" __global__ void sort_rows_recursive(int* rows, const int* lengths, int width, int count) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < count) sort_range(rows + r * width, 0, lengths[r] - 1);
}

// Ways to place queens on a board, and Ackermann's function: deep and divergent recursion, results by value.
__device__ int queens(int size, unsigned columns, unsigned left, unsigned right, int row) {
    if (row == size) return 1;
    int ways = 0;
    for (unsigned free = ~(columns | left | right) & ((1u << size) - 1); free; free &= free - 1) {
        unsigned place = free & -free;
        ways += queens(size, columns | place, (left | place) << 1, (right | place) >> 1, row + 1);
    }
    return ways;
}
__device__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }

extern "C" __global__ void count_queens(int* ways, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ways[i] = queens(i % 6 + 1, 0, 0, 0, 0);
}
extern "C" __global__ void ackermanns(int* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = ackermann(i % 3, i / 3);
}

// Two functions that call each other.
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
extern "C" __global__ void parities(int* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = even(i);
}

// A table of functions in constant memory, indexed by data: lanes of one warp call different ones.
typedef float (*Operation)(float, float);
__device__ float plus(float a, float b) { return a + b; }
__device__ float minus(float a, float b) { return a - b; }
__device__ float times(float a, float b) { return a * b; }
__device__ float larger(float a, float b) { return a > b ? a : b; }
__constant__ Operation operations[4] = {plus, minus, times, larger};
extern "C" __global__ void apply(const unsigned char* which, const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[which[i] & 3](a[i], b[i]);
}

// One pointer, chosen by the launch: the same function for all lanes.
__device__ double simpson(double (*f)(double), double from, double to, int parts) {
    double sum = f(from) + f(to), step = (to - from) / parts;
    for (int k = 1; k < parts; k++) sum += f(from + k * step) * (k % 2 ? 4 : 2);
    return sum * step / 3;
}
__device__ double cube(double x) { return x * x * x; }
__device__ double bell(double x) { return 1 / (1 + x * x); }
extern "C" __global__ void integrate(double* out, int choice, int n) {
    int i = threadIdx.x;
    double (*f)(double) = choice ? bell : cube;
    if (i < n) out[i] = simpson(f, 0, i + 1, 20);
}

// Virtual functions: objects of several classes made on the device, called through their base.
struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 0; }
};
struct Circle : Shape {
    float r;
    __device__ Circle(float r) : r(r) {}
    __device__ float area() const override { return 3.14159265f * r * r; }
};
struct Box : Shape {
    float a, b;
    __device__ Box(float a, float b) : a(a), b(b) {}
    __device__ float area() const override { return a * b; }
    __device__ int corners() const override { return 4; }
};
struct Square : Box {
    __device__ Square(float a) : Box(a, a) {}
    __device__ float area() const override { return Box::area() + 0.5f; }
};
extern "C" __global__ void measure(const float* sizes, float* areas, int* corners, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Circle circle(sizes[i]);
    Box box(sizes[i], 2);
    Square square(sizes[i]);
    Shape* shapes[3] = {&circle, &box, &square};
    Shape* mine = shapes[i % 3];
    areas[i] = mine->area();
    corners[i] = mine->corners();
}
