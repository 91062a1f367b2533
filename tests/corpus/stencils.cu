// Neighborhoods: stencils in two and three dimensions, a chip's temperature, the game of life on bits, convolutions, DCT.

// Five points with a halo in shared memory; the block's shape is free.
extern "C" __global__ void stencil_5(const float* in, float* out, int width, int height, float c) {
    extern __shared__ float tile[];
    int pitch = blockDim.x + 2;
    for (int y = threadIdx.y; y < blockDim.y + 2; y += blockDim.y)
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            int gx = min(max((int)(blockIdx.x * blockDim.x + x) - 1, 0), width - 1);
            int gy = min(max((int)(blockIdx.y * blockDim.y + y) - 1, 0), height - 1);
            tile[y * pitch + x] = in[gy * width + gx];
        }
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float* at = &tile[(threadIdx.y + 1) * pitch + threadIdx.x + 1];
    out[y * width + x] = at[0] + c * (at[-1] + at[1] + at[-pitch] + at[pitch] - 4 * at[0]);
}

// Seven points in three dimensions, marching along z with three planes in registers.
extern "C" __global__ void stencil_7(const double* in, double* out, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny, at = y * nx + x;
    double below = in[at], here = in[at + plane];
    for (int z = 1; z < nz - 1; z++) {
        int i = z * plane + at;
        double above = in[i + plane];
        out[i] = (below + above + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]) / 6.0 - here;
        below = here;
        here = above;
    }
}

// Several time steps of a chip's temperature in one launch: the valid part of the tile shrinks by one ring a step.
template <int TILE, int STEPS>
__global__ void hotspot(const float* temperature, const float* power, float* out, int rows, int columns, float dt) {
    __shared__ float heat[2][TILE][TILE];
    constexpr int inner = TILE - 2 * STEPS;
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * inner + tx - STEPS, y = blockIdx.y * inner + ty - STEPS;
    bool inside = x >= 0 && x < columns && y >= 0 && y < rows;
    float watts = inside ? power[y * columns + x] : 0;
    heat[0][ty][tx] = inside ? temperature[y * columns + x] : 0;
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step <= STEPS; step++) {
        auto& now = heat[(step + 1) % 2];
        bool valid = inside && tx >= step && tx < TILE - step && ty >= step && ty < TILE - step;
        if (valid) {
            float here = now[ty][tx];
            float west = x > 0 ? now[ty][tx - 1] : here, east = x < columns - 1 ? now[ty][tx + 1] : here;
            float north = y > 0 ? now[ty - 1][tx] : here, south = y < rows - 1 ? now[ty + 1][tx] : here;
            heat[step % 2][ty][tx] = here + dt * (watts + west + east + north + south - 4 * here);
        }
        __syncthreads();
    }
    bool mine = tx >= STEPS && tx < TILE - STEPS && ty >= STEPS && ty < TILE - STEPS;
    if (inside && mine) out[y * columns + x] = heat[STEPS % 2][ty][tx];
}
template __global__ void hotspot<12, 2>(const float*, const float*, float*, int, int, float);

// Conway's life on a torus, 32 cells a word: neighbors are counted by adders made of logic.
extern "C" __global__ void life_words(const unsigned* in, unsigned* out, int words, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words * rows) return;
    int row = i / words, w = i % words;
    unsigned ones = 0, twos = 0, fours = 0;
    auto count = [&](unsigned cells) {
        unsigned carry = ones & cells;
        ones ^= cells;
        unsigned more = twos & carry;
        twos ^= carry;
        fours |= more;
    };
    for (int dy = -1; dy <= 1; dy++) {
        const unsigned* line = in + (row + dy + rows) % rows * words;
        unsigned here = line[w], left = line[(w + words - 1) % words], right = line[(w + 1) % words];
        count(__funnelshift_l(left, here, 1));
        if (dy) count(here);
        count(__funnelshift_r(here, right, 1));
    }
    out[i] = twos & ~fours & (ones | in[i]);
}
