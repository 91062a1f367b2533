// Barriers of the whole grid.

#include <cooperative_groups.h>

extern "C" __global__ void turned(float* x, float* y, int n, int rounds) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    for (int round = 0; round < rounds; ++round) {
        x[i] = i + round;  // turned: store
        grid.sync();
        y[i] = x[n - 1 - i];
        grid.sync();
    }
}

extern "C" __global__ void turned_once_unordered(float* x, float* y, int n) {
    int i = cooperative_groups::this_grid().thread_rank();
    x[i] = i;  // unordered: store
    y[i] = x[n - 1 - i];  // unordered: load
}

extern "C" __global__ void second_barrier_missing(float* x, float* y, int n, int rounds) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    for (int round = 0; round < rounds; ++round) {
        x[i] = i + round;  // missing: store
        grid.sync();
        y[i] = x[n - 1 - i];  // missing: load
    }
}
