// The kernels of the speed benchmark in OpenCL C, for PoCL; see kernels.cu.

void multiply(global const float *a, global const float *b, global float *c, int n, int row, int column)
{
    if (row < n && column < n) {
        float total = 0.0f;
        for (int k = 0; k < n; k++)
            total += a[row * n + k] * b[k * n + column];
        c[row * n + column] = total;
    }
}

kernel void sgemm(global const float *a, global const float *b, global float *c, int n)
{
    multiply(a, b, c, n, get_global_id(1), get_global_id(0));
}

kernel void sgemm_columns(global const float *a, global const float *b, global float *c, int n)
{
    multiply(a, b, c, n, get_global_id(0), get_global_id(1));
}

#define SGEMM_TILED(NAME, TILE)                                                                                        \
    kernel void NAME(global const float *a, global const float *b, global float *c, int n)                             \
    {                                                                                                                  \
        local float a_tile[TILE][TILE], b_tile[TILE][TILE];                                                            \
        int x = get_local_id(0), y = get_local_id(1), row = get_group_id(1) * TILE + y;                                \
        int column = get_group_id(0) * TILE + x;                                                                       \
        float total = 0.0f;                                                                                            \
        for (int start = 0; start < n; start += TILE) {                                                                \
            a_tile[y][x] = a[row * n + start + x];                                                                     \
            b_tile[y][x] = b[(start + y) * n + column];                                                                \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
            for (int k = 0; k < TILE; k++)                                                                             \
                total += a_tile[y][k] * b_tile[k][x];                                                                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        c[row * n + column] = total;                                                                                   \
    }

SGEMM_TILED(sgemm_tiled16, 16)
SGEMM_TILED(sgemm_tiled32, 32)

#define TRANSPOSE(NAME, TILE, ROWS)                                                                                    \
    kernel void NAME(global const float *in, global float *out, int n)                                                 \
    {                                                                                                                  \
        local float tile[TILE][TILE + 1];                                                                              \
        int tx = get_local_id(0), ty = get_local_id(1);                                                                \
        int x = get_group_id(0) * TILE + tx, y = get_group_id(1) * TILE + ty;                                          \
        for (int i = 0; i < TILE; i += ROWS)                                                                           \
            tile[ty + i][tx] = in[(y + i) * n + x];                                                                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        x = get_group_id(1) * TILE + tx;                                                                               \
        y = get_group_id(0) * TILE + ty;                                                                               \
        for (int i = 0; i < TILE; i += ROWS)                                                                           \
            out[(y + i) * n + x] = tile[tx][ty + i];                                                                   \
    }

TRANSPOSE(transpose16, 16, 16)
TRANSPOSE(transpose32, 32, 8)

kernel void reduction(global const float *in, global float *out, int n)
{
    local float sums[256];
    int t = get_local_id(0);
    float total = 0.0f;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        total += in[i];
    sums[t] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (t < half_size)
            sums[t] += sums[t + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        out[get_group_id(0)] = sums[0];
}

kernel void vector_add(global const float *x, global const float *y, global float *z, int n)
{
    int i = get_global_id(0);
    if (i < n)
        z[i] = x[i] + y[i];
}

kernel void collatz(global int *steps, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    long value = i + 1;
    int count = 0;
    while (value != 1) {
        if (value % 2)
            value = 3 * value + 1;
        else
            value /= 2;
        count++;
    }
    steps[i] = count;
}

kernel void softmax(global const float *in, global float *out, int columns)
{
    local float shared[256];
    int t = get_local_id(0), size = get_local_size(0);
    global const float *x = in + get_group_id(0) * columns;
    float most = x[t];
    for (int i = t; i < columns; i += size)
        most = fmax(most, x[i]);
    shared[t] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = size / 2; half_size > 0; half_size /= 2) {
        if (t < half_size)
            shared[t] = fmax(shared[t], shared[t + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    most = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = t; i < columns; i += size)
        sum += exp(x[i] - most);
    shared[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = size / 2; half_size > 0; half_size /= 2) {
        if (t < half_size)
            shared[t] += shared[t + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = shared[0];
    for (int i = t; i < columns; i += size)
        out[get_group_id(0) * columns + i] = exp(x[i] - most) / sum;
}
