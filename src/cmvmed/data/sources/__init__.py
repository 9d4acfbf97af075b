"""The rows of all views in memory, in files, on a cluster or on a GPU."""

from cmvmed.data.sources.array_rows import ArrayApiRows
from cmvmed.data.sources.arrays import ArrayTable, LocalRows, PaddedTable, Table, memory_rows
from cmvmed.data.sources.base import ChunkFunction, RowFunction, RowSource, Sums
from cmvmed.data.sources.dask import DaskRows, dask_rows
from cmvmed.data.sources.files import open_files
from cmvmed.data.sources.zarr_arrays import open_zarr

__all__ = [
    "ArrayApiRows",
    "ArrayTable",
    "ChunkFunction",
    "DaskRows",
    "LocalRows",
    "PaddedTable",
    "RowFunction",
    "RowSource",
    "Sums",
    "Table",
    "dask_rows",
    "memory_rows",
    "open_files",
    "open_zarr",
]
