"""Numeric matrices of a MATLAB file, read by scipy and checked against the expected shapes.

``scipy.io.loadmat`` is not safe for unknown content: in scipy 1.17 a file with an invalid data type crashes the
interpreter. Files with ``DataFile.always_verify`` only are read here, that is files with a known checksum.
"""

import io
import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from cmvmed.datasets.errors import DatasetError

REAL_DTYPE_KINDS = "fiub"


def load_matrices(data: bytes, shapes: Mapping[str, tuple[int, int]], *, name: str) -> dict[str, NDArray[np.float64]]:
    """Return the variables named in `shapes` as float64 arrays; other variables are not read.

    Parameters
    ----------
    data : bytes
        Content of a MATLAB file, version 7.2 or earlier, whose checksum has been verified.
    shapes : mapping from str to (n_rows, n_columns)
        Names and shapes of the variables.
    name : str
        File name, for the error message.

    Raises
    ------
    DatasetError
        If it is not a MATLAB file, or a variable is absent, of another shape or not a full matrix of real numbers.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about variables that scipy cannot read, which are refused below
            variables = loadmat(io.BytesIO(data), variable_names=list(shapes))  # type: ignore[arg-type]
    except Exception as error:  # scipy documents no exceptions and raises many kinds
        reason = str(error) or type(error).__name__
        raise DatasetError(f"{name} is not a MATLAB file that scipy can read ({reason}). Get it again.") from error
    return {
        variable: _real_matrix(variables.get(variable), shape, f"the variable {variable} of {name}")
        for variable, shape in shapes.items()
    }


def _real_matrix(value: object, shape: tuple[int, int], name: str) -> NDArray[np.float64]:
    """Return a loaded variable as float64; strings, cells, structs, sparse and complex matrices are refused."""
    if value is None:
        raise DatasetError(f"There is no {name.removeprefix('the ')}: it is a different file. Get it again.")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in REAL_DTYPE_KINDS:
        raise DatasetError(f"Not a full matrix of real numbers: {name}. Get the file again.")
    if value.shape != shape:
        raise DatasetError(f"Wrong shape of {name}: {value.shape}, expected {shape}. Get the file again.")
    return np.array(value, dtype=np.float64, order="C")
