// Barriers of the whole grid.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Heat on a ring, all steps in one cooperative launch.
extern "C" __global__ void heat_grid(float* a, float* b, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    for (int s = 0; s < steps; s++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size()) b[i] = a[i] + 0.25f * (a[(i + 1) % n] + a[(i + n - 1) % n] - 2 * a[i]);
        grid.sync();
        float* other = a; a = b; b = other;
    }
}
