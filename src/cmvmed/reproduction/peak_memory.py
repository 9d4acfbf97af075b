"""Peak memory of a piece of work, as the operating system counts it."""

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
    """Growth of the process's resident memory at its highest, in MiB; None where the system does not tell."""

    mib: float | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure how far the resident memory rises above what it was at the start.

    Linux keeps the highest value and resets it on request; memory that the process holds in reserve from earlier work is given
    back first. With several threads the work of all of them is counted.
    """
    peak = Peak()
    start = _reset()
    yield peak
    highest = _status("VmHWM")
    if start is not None and highest is not None:
        peak.mib = max(0.0, highest - start)


def _reset() -> float | None:
    """Reset the highest value to the present one, which is returned."""
    if not _PROCESS.is_dir():
        return None
    _give_back_reserve()
    try:
        (_PROCESS / "clear_refs").write_text("5")  # see proc(5)
    except OSError:
        return None
    return _status("VmRSS")


def _give_back_reserve() -> None:
    """Return freed memory to the system, where the C library can (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status(field: str) -> float | None:
    """A field of the process's status in MiB."""
    try:
        lines = (_PROCESS / "status").read_text().splitlines()
    except OSError:
        return None
    sizes = [float(line.split()[1]) / 1024.0 for line in lines if line.startswith(f"{field}:")]
    return sizes[0] if sizes else None
