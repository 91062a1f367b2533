// What `cuda.cg.this_grid().sync()` of a Python kernel calls. The driver gives a cooperative launch a workspace, whose
// address is in two special registers; its second word is the barrier of the grid. Each block adds 1 to it, the first block
// as much more as makes the top bit flip when all have come.

extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(enum cudaCGScope scope) {
    unsigned int high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (unsigned long long)high << 32 | low;
}

extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long workspace, unsigned int flags) {
    const unsigned int top = 0x80000000u;
    __syncthreads();
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        unsigned int *barrier = (unsigned int *)workspace + 1;
        bool first = blockIdx.x + blockIdx.y + blockIdx.z == 0;
        unsigned int others = gridDim.x * gridDim.y * gridDim.z - 1;
        __threadfence();
        unsigned int before = atomicAdd(barrier, first ? top - others : 1u);
        while (((before ^ *(volatile unsigned int *)barrier) & top) == 0);
        __threadfence();
    }
    __syncthreads();
    return cudaSuccess;
}
