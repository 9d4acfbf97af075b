"""Labels of partly labeled data."""

import numpy as np


def labels_with_counts(counts, n_unlabeled, seed):
    """Shuffled y with counts[k] rows of class k and n_unlabeled rows of -1."""
    y = np.repeat(np.arange(-1, len(counts)), [n_unlabeled, *counts])
    return np.random.default_rng(seed).permutation(y)
