"""Text of LLVM IR, its compiler, and native code on disk."""
