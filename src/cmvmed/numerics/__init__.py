"""Linear algebra, kernels, landmarks, trees, threads: nothing of the method."""
