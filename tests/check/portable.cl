// The same text for OpenCL C and for CUDA C++ (test_oclgrind.py puts the words of the one before it).

__kernel void no_barrier(__global const int* x, __global int* y) {
    __local int s[64];
    int t = get_local_id(0);
    s[t] = x[t];
    y[t] = s[63 - t];
}

__kernel void with_barrier(__global const int* x, __global int* y) {
    __local int s[64];
    int t = get_local_id(0);
    s[t] = x[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = s[63 - t];
}

__kernel void no_second_barrier(__global const int* x, __global int* y) {
    __local int s[64];
    int t = get_local_id(0), sum = 0;
    for (int step = 0; step < 2; ++step) {
        s[t] = x[t] + step;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += s[63 - t];
    }
    y[t] = sum;
}

__kernel void two_buffers(__global const int* x, __global int* y) {
    __local int s[2][64];
    int t = get_local_id(0), sum = 0;
    for (int step = 0; step < 5; ++step) {
        s[step % 2][t] = x[t] + step;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += s[step % 2][63 - t];
    }
    y[t] = sum;
}

__kernel void increments(__global const int* x, __global int* y) { y[x[get_global_id(0)] % 4] += 1; }

__kernel void histogram(__global const int* x, __global int* y) {
    __local int bins[8];
    int t = get_local_id(0);
    if (t < 8) bins[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[x[get_global_id(0)] % 8], 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 8) atomic_add(&y[t], bins[t]);
}

__kernel void different_values(__global const int* x, __global int* y) {
    int i = get_global_id(0);
    y[i / 2] = i + 1;
}

__kernel void same_value(__global const int* x, __global int* y) {
    if (x[get_global_id(0)] > 2) y[0] = 1;
}

__kernel void beyond_the_end(__global const int* x, __global int* y) {
    int i = get_global_id(0) + 8;
    y[i] = x[i];
}

__kernel void never_stored(__global const int* x, __global int* y) {
    __local int s[64];
    int t = get_local_id(0);
    if (t < 40) s[t] = t;
    barrier(CLK_LOCAL_MEM_FENCE);
    y[t] = s[t];
}

__kernel void sum_without_barrier(__global const int* x, __global int* y) {
    __local int sum;
    int t = get_local_id(0);
    if (t == 0) sum = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&sum, x[t]);
    y[t] = sum;
}

__kernel void between_blocks(__global const int* x, __global int* y) {
    int i = get_global_id(0);
    y[i] = x[i] + 1;
    if (i < 32) y[i + 32] += 1;
}
