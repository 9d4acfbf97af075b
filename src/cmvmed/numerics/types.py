"""Array types that all modules use."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Single: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Matrix: TypeAlias = Any  # a dense (n, d) float64 array or a scipy CSR matrix of the same shape, which share no type
