// Kernels whose calls cannot all be inlined: recursion, function pointers, virtual functions.
#define KERNEL extern "C" __global__ void
#define CALLED __device__ __noinline__

CALLED int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL fibonacci_kernel(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 7) + 1000 * fibonacci(3); }

CALLED int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL ackermann_kernel(int *out) { out[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 5); }

CALLED int is_odd(int n);
CALLED int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
CALLED int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1) + 2 * (n > 15); }
KERNEL mutual_kernel(int *out) { out[threadIdx.x] = is_even(threadIdx.x) * 100 + is_odd(threadIdx.x + 1); }

CALLED void quicksort(int *a, int left, int right) {
    if (left >= right) return;
    int pivot = a[(left + right) / 2], i = left, j = right;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; }
    }
    quicksort(a, left, j);
    quicksort(a, i, right);
}
KERNEL quicksort_kernel(int *a, int n) { quicksort(a + threadIdx.x * n, 0, n - 1 - threadIdx.x); }

// Local arrays and structures by value in every frame; doubles, predicates and 64-bit values live across calls.
struct Path { int steps[5], last; double cost; };
CALLED Path walk(Path path, const int *graph, int node, long long seen, bool odd) {
    int order[5];
    for (int i = 0; i < 5; i++) order[i] = (node + i * (odd ? 2 : 3)) % 5;
    Path best = path;
    best.cost = 1e9;
    seen |= 1LL << (40 + node);
    path.steps[path.last++] = node;
    if (path.last == 5) return path;
    for (int i = 0; i < 5; i++) {
        if (seen >> (40 + order[i]) & 1) continue;
        Path longer = path;
        longer.cost += graph[node * 5 + order[i]];
        Path found = walk(longer, graph, order[i], seen, !odd);
        if (found.cost < best.cost) best = found;
    }
    return best;
}
KERNEL salesman_kernel(const int *graph, double *costs, int *steps) {
    int t = threadIdx.x;
    Path start = {};
    start.cost = t * 0.25;
    Path best = walk(start, graph + t * 25, t % 5, 0, t & 1);
    costs[t] = best.cost;
    for (int i = 0; i < 5; i++) steps[t * 5 + i] = best.steps[i];
}

// A binary tree in arrays; barriers and exits inside functions.
CALLED int tree_sum(const int *value, const int *left, const int *right, int node) {
    if (node < 0) return 0;
    int sum = tree_sum(value, left, right, left[node]);
    return sum + value[node] + 3 * tree_sum(value, left, right, right[node]);
}
CALLED int leave_or_wait(int *out, int depth) {
    if (depth > 0) return leave_or_wait(out, depth - 1) + 1;
    __syncthreads();
    if (out[threadIdx.x] % 7 == 0) asm("exit;");
    return 5;
}
KERNEL tree_kernel(const int *value, const int *left, const int *right, int *out, int n) {
    out[threadIdx.x] = tree_sum(value, left, right, threadIdx.x % n);
    out[threadIdx.x] += leave_or_wait(out, 3);
}

// Function pointers in constant and global memory, chosen by lane, and one that calls itself through a table.
typedef int (*Operation)(int, int);
CALLED int plus(int a, int b) { return a + b; }
CALLED int times(int a, int b) { return a * b; }
CALLED int evaluate(int a, int b);
CALLED int larger(int a, int b) { return a > b ? a : b; }
__constant__ Operation operations[4] = {plus, times, evaluate, larger};
__device__ Operation chosen = larger;
CALLED int evaluate(int a, int b) { return b <= 0 ? a : operations[b & 3](a + 1, b - 1) + a; }
KERNEL pointer_kernel(int *out, int n) {
    int t = threadIdx.x;
    Operation operation = operations[t & 3];
    out[t] = operation(t, n) + chosen(t, 10);
    if (t % 5 == 0) out[t] -= (t & 1 ? plus : times)(t, 3);
}
KERNEL store_pointer(Operation *place, int which) { *place = operations[which]; }
KERNEL call_pointer(Operation *place, int *out) { out[threadIdx.x] = (*place)(threadIdx.x, 7); }
KERNEL call_other(void **place, float *out) { out[0] = ((float (*)(float))*place)(1.0f); }

// A recursive descent over the text of an expression.
struct Reader { const char *text; int at; };
CALLED int sum_of(Reader &reader);
CALLED int factor(Reader &reader) {
    if (reader.text[reader.at] == '(') {
        reader.at++;
        int value = sum_of(reader);
        reader.at++;
        return value;
    }
    int value = 0;
    while (reader.text[reader.at] >= '0' && reader.text[reader.at] <= '9') value = value * 10 + reader.text[reader.at++] - '0';
    return value;
}
CALLED int product(Reader &reader) {
    int value = factor(reader);
    while (reader.text[reader.at] == '*') { reader.at++; value *= factor(reader); }
    return value;
}
CALLED int sum_of(Reader &reader) {
    int value = product(reader);
    while (reader.text[reader.at] == '+') { reader.at++; value += product(reader); }
    return value;
}
KERNEL expression_kernel(const char *texts, int *out, int length) {
    Reader reader = {texts + threadIdx.x * length, 0};
    out[threadIdx.x] = sum_of(reader);
}

// Objects made by one kernel, used by another: virtual functions, one of which visits its children.
struct Shape {
    float size;
    __device__ Shape(float size) : size(size) {}
    __device__ virtual float area() const = 0;
    __device__ virtual float doubled() const { return 2 * area(); }
};
struct Square : Shape {
    __device__ Square(float size) : Shape(size) {}
    __device__ float area() const override { return size * size; }
};
struct Circle : Shape {
    __device__ Circle(float size) : Shape(size) {}
    __device__ float area() const override { return 3 * size * size; }
    __device__ float doubled() const override { return -1; }
};
struct Pair : Shape {
    const Shape *one, *two;
    __device__ Pair(const Shape *one, const Shape *two) : Shape(0), one(one), two(two) {}
    __device__ float area() const override { return one->area() + two->area(); }
};
KERNEL make_shapes(char *storage) {
    int t = threadIdx.x;
    char *place = storage + 32 * t;
    if (t % 3 == 0) new (place) Square(t);
    else if (t % 3 == 1) new (place) Circle(t);
    else new (place) Pair((Shape *)(storage + 32 * (t - 1)), (Shape *)(storage + 32 * (t / 2)));
}
KERNEL use_shapes(char *storage, float *out) {
    const Shape *shape = (const Shape *)(storage + 32 * threadIdx.x);
    out[threadIdx.x] = threadIdx.x & 1 ? shape->area() : shape->doubled();
}

CALLED int endless(int n) { return endless(n + 1) * 3 + n; }
KERNEL endless_kernel(int *out) { if (threadIdx.x == 5) out[0] = endless(out[1]); }
