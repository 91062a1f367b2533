// Bodies, rays and fractals: arithmetic per item, with vector types, structs of arrays and divergent loops.

#include <math.h>

// Accelerations of all bodies on all, tiles of positions through shared memory.
extern "C" __global__ void attract(const float4* bodies, float3* pulls, int n, float softening) {
    __shared__ float4 tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 pull = make_float3(0, 0, 0);
    for (int first = 0; first < n; first += blockDim.x) {
        int other = first + threadIdx.x;
        tile[threadIdx.x] = other < n ? bodies[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < blockDim.x; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float strength = tile[k].w * inverse * inverse * inverse;
            pull.x += strength * dx; pull.y += strength * dy; pull.z += strength * dz;
        }
        __syncthreads();
    }
    if (i < n) pulls[i] = pull;
}

// Iterations until a point of the plane escapes; 16-bit results, and the loop's length differs between lanes.
extern "C" __global__ void mandelbrot(unsigned short* counts, int width, int height, double left, double top, double step, int most) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = left + px * step, cy = top - py * step, x = 0, y = 0;
    int count = 0;
    while (count < most) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4) break;
        y = __dadd_rn(__dmul_rn(2, __dmul_rn(x, y)), cy);
        x = __dadd_rn(__dsub_rn(xx, yy), cx);
        count++;
    }
    counts[py * width + px] = count;
}

// A class for complex numbers, and the set of Julia with it.
struct Complex {
    float re, im;
    __device__ constexpr Complex(float re, float im = 0) : re(re), im(im) {}
    __device__ Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
    __device__ Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
    __device__ float squared() const { return re * re + im * im; }
};

extern "C" __global__ void julia(bool* inside, int edge, float re, float im) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= edge || y >= edge) return;
    Complex z(3.0f * x / edge - 1.5f, 3.0f * y / edge - 1.5f), c(re, im);
    int count = 0;
    for (; count < 40 && z.squared() <= 4; count++) z = z * z + c;
    inside[y * edge + x] = count == 40;
}

// Parallel rays along z against spheres in a struct of arrays: number of the nearest sphere and its distance.
struct Spheres { const float *x, *y, *z, *radius; int count; };
extern "C" __global__ void cast_rays(Spheres spheres, int* hit, float* depth, int width, int height) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float nearest = INFINITY;
    int number = -1;
    for (int s = 0; s < spheres.count; s++) {
        float dx = px - spheres.x[s], dy = py - spheres.y[s], r = spheres.radius[s];
        float left = r * r - dx * dx - dy * dy;
        if (left < 0) continue;
        float z = spheres.z[s] - sqrtf(left);
        if (z < nearest) { nearest = z; number = s; }
    }
    hit[py * width + px] = number;
    depth[py * width + px] = nearest;
}
