"""How much memory may be used: what the user says, or a share of what is free."""

import os
import re
from contextlib import suppress
from numbers import Real
from pathlib import Path

DEFAULT_SHARE = 0.5  # of the free memory
FALLBACK = 4 << 30  # bytes, where the system does not report it
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}


def read_memory_limit(given: object) -> int:
    """Bytes: a number of them, a text such as "1.5 GiB" or "500MB", or None for half of the free memory."""
    if given is None:
        return int(DEFAULT_SHARE * free_memory())
    if isinstance(given, Real) and not isinstance(given, bool) and float(given) >= 1.0:
        return int(float(given))
    match = re.fullmatch(r"([0-9.]+)\s*([a-z]*)", given.strip().lower()) if isinstance(given, str) else None
    if match is not None and match[2] in UNITS:
        with suppress(ValueError):  # two points in the number
            if (limit := int(float(match[1]) * UNITS[match[2]])) >= 1:
                return limit
    raise ValueError(f"memory_limit must be None, a number of bytes or a text such as '1.5GiB', but is {given!r}.")


def free_memory() -> int:
    """Bytes that this process may still take, by the machine, its container and its own limits."""
    left = [_machine(), _container(), *_process_limits()]
    return max(0, min(amount for amount in left if amount is not None))


def _machine() -> int:
    available = _lines(Path("/proc/meminfo")).get("MemAvailable")
    if available is not None:
        return available
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # not on this system
        return FALLBACK


def _container() -> int | None:
    """What the control group of this process leaves, in either version of control groups; cached files can be given up."""
    folder = Path("/sys/fs/cgroup")
    for limit, used, cached in (
        (folder / "memory.max", folder / "memory.current", "inactive_file"),
        (
            folder / "memory" / "memory.limit_in_bytes",
            folder / "memory" / "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ):
        try:
            stat = dict(line.split() for line in (limit.parent / "memory.stat").read_text().splitlines())
            return int(limit.read_text()) - int(used.read_text()) + int(stat.get(cached, 0))
        except (OSError, ValueError):  # another version, or "max"
            continue
    return None


def _process_limits() -> list[int]:
    try:
        import resource
    except ImportError:  # not on this system
        return []
    used = _lines(Path("/proc/self/status"))
    limits = [(resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")]
    soft = [(resource.getrlimit(kind)[0], used.get(name, 0)) for kind, name in limits]
    return [limit - taken for limit, taken in soft if limit != resource.RLIM_INFINITY]


def _lines(path: Path) -> dict[str, int]:
    """Bytes by name, from lines such as "MemAvailable: 123 kB"."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found = (re.match(r"(\w+):\s+(\d+) kB", line) for line in lines)
    return {match[1]: int(match[2]) * 1024 for match in found if match is not None}
