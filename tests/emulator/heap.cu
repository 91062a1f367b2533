// Kernels that take memory from the GPU's heap.
#define KERNEL extern "C" __global__ void

struct Node {
    int value;
    Node *next;
    __device__ Node(int value, Node *next) : value(value), next(next) {}
};

KERNEL lists(int *out, int n) {
    Node *head = nullptr;
    for (int i = 0; i < (int)threadIdx.x % n; i++) head = new Node(i * threadIdx.x, head);
    int sum = 0, count = 0;
    while (head) {
        Node *gone = head;
        sum += ++count * head->value;
        head = head->next;
        delete gone;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

struct Shape { __device__ virtual ~Shape() {} __device__ virtual int area() = 0; };
struct Square : Shape { int side; int *count; __device__ Square(int side, int *count) : side(side), count(count) {} __device__ ~Square() override { atomicAdd(count, 1); } __device__ int area() override { return side * side; } };
struct Line : Shape { int *points; int n; __device__ Line(int n) : points(new int[n]), n(n) { for (int i = 0; i < n; i++) points[i] = i; } __device__ ~Line() override { delete[] points; } __device__ int area() override { int sum = 0; for (int i = 0; i < n; i++) sum += points[i]; return -sum; } };

KERNEL make(Shape **shapes, int *count) { int t = threadIdx.x; shapes[t] = t & 1 ? (Shape *)new Square(t, count) : (Shape *)new Line(t); }
KERNEL use(Shape **shapes, int *out) { out[threadIdx.x] = shapes[threadIdx.x]->area(); delete shapes[threadIdx.x]; }

KERNEL pieces(unsigned long long *out, size_t bytes) { out[threadIdx.x] = (unsigned long long)malloc(bytes); }
KERNEL release(void **pointers) { free(pointers[threadIdx.x]); }
KERNEL overrun(int n) { char *piece = (char *)malloc(16); piece[n] = 1; }
