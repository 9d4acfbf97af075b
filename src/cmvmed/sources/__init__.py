"""The rows of all views, wherever they lie: in memory, in files, on a cluster."""

from cmvmed.sources.cluster import DaskRows, dask_rows
from cmvmed.sources.files import open_files, open_zarr
from cmvmed.sources.local import ArrayTable, LocalRows, Table, memory_rows
from cmvmed.sources.rows import ChunkFunction, RowFunction, RowSource, Sums

__all__ = [
    "ArrayTable",
    "ChunkFunction",
    "DaskRows",
    "LocalRows",
    "RowFunction",
    "RowSource",
    "Sums",
    "Table",
    "dask_rows",
    "memory_rows",
    "open_files",
    "open_zarr",
]
