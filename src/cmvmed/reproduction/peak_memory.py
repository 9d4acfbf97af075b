"""Peak resident memory of a block of code."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PROCESS = Path("/proc/self")


@dataclass
class Peak:
    """Growth of the peak resident memory of the process in MiB; None if the system does not report it."""

    mib: float | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak resident memory above its value at the start, on Linux.

    Freed memory that the allocator still holds is returned to the system first. All threads of the process count.
    """
    peak = Peak()
    start = _reset()
    yield peak
    peak_value = _status_mib("VmHWM")
    if start is not None and peak_value is not None:
        peak.mib = max(0.0, peak_value - start)


def _reset() -> float | None:
    """Reset the peak to the current resident memory and return it."""
    if not _PROCESS.is_dir():
        return None
    _trim_heap()
    try:
        (_PROCESS / "clear_refs").write_text("5")  # see proc(5)
    except OSError:
        return None
    return _status_mib("VmRSS")


def _trim_heap() -> None:
    """Return freed memory to the system if the C library supports it (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_mib(field: str) -> float | None:
    """A field of /proc/self/status in MiB."""
    try:
        lines = (_PROCESS / "status").read_text().splitlines()
    except OSError:
        return None
    sizes = [float(line.split()[1]) / 1024.0 for line in lines if line.startswith(f"{field}:")]
    return sizes[0] if sizes else None
