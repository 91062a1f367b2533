"""What is known about a kernel before it runs: which values are uniform or affine, their intervals, who waits for whom."""
