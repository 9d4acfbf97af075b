"""The rows of all views, wherever they lie: in memory, in files, on a cluster."""

from cmvmed.sources.local import LocalRows, memory_rows
from cmvmed.sources.rows import ChunkFunction, RowSource, Sums

__all__ = ["ChunkFunction", "LocalRows", "RowSource", "Sums", "memory_rows"]
