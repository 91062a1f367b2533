// copying: which thread touches which element. The same bytes, five ways to walk them.

#define FIELDS 4  // floats of a particle: x, y, z and mass

// Neighboring threads are `stride` elements apart; a row of blocks copies one column.
extern "C" __global__ void strided(const float *x, float *y, int n, int stride)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y;
    int i = row * stride + column;
    if (i < n)
        y[i] = x[i];
}

// Thread t copies particle t, FIELDS neighboring floats.
extern "C" __global__ void aos(const float *x, float *y, int n)
{
    int particle = blockIdx.x * blockDim.x + threadIdx.x;
    for (int field = 0; field < FIELDS; field++) {
        int i = particle * FIELDS + field;
        if (i < n)
            y[i] = x[i];
    }
}

// Thread t copies particle t, whose fields lie in FIELDS arrays.
extern "C" __global__ void soa(const float *x, float *y, int n)
{
    int particle = blockIdx.x * blockDim.x + threadIdx.x;
    int particles = (n + FIELDS - 1) / FIELDS;
    if (particle < particles) {
        for (int field = 0; field < FIELDS; field++) {
            int i = field * particles + particle;
            if (i < n)
                y[i] = x[i];
        }
    }
}

// Neighbors copy neighbors, from `shift` elements on; the first elements come last.
extern "C" __global__ void offset(const float *x, float *y, int n, int shift)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int j = i + shift;
        if (j >= n)
            j -= n;
        y[j] = x[j];
    }
}

// Thread i copies element i.
extern "C" __global__ void coalesced(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
