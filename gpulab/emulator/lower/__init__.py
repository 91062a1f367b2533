"""A kernel to LLVM IR, one warp at a time: `kernel` goes through the blocks, each other module knows one family."""
