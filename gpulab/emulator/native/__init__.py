"""What the code of kernels calls, as LLVM IR as well: addresses, counts, waiting, and the driver that runs warp after warp."""
