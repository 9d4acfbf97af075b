"""Linear algebra, kernels, landmarks, threads: nothing of the method."""
