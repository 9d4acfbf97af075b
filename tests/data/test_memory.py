"""The memory limit: what the user gives, or half of what the machine, the container and the process have left."""

import subprocess
import sys

import pytest

from cmvmed.data import memory
from cmvmed.data.memory import free_memory, read_memory_limit
from cmvmed.data.sources.base import format_bytes


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1000, 1000), (2.5e9, 2_500_000_000), ("500MB", 500_000_000), (" 1.5 GiB", 3 << 29), ("7", 7), ("64kib", 65536)],
)
def test_a_given_limit(given, expected):
    assert read_memory_limit(given) == expected


@pytest.mark.parametrize("given", ["", "a lot", "1.2.3GB", "5 potatoes", 0, -1, True, "0GB", [1]])
def test_values_that_are_no_limit(given):
    with pytest.raises(ValueError, match="memory_limit must be"):
        read_memory_limit(given)


def test_half_of_the_free_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    assert read_memory_limit(None) == 500


def test_the_machine_has_free_memory():
    assert 1 << 20 < free_memory() < 1 << 50


def test_the_limit_of_the_container_counts(monkeypatch):
    monkeypatch.setattr(memory, "_container", lambda: 12345)
    assert free_memory() == 12345


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(kind):
    code = (
        "import resource; from cmvmed.data.memory import free_memory;"
        f"resource.setrlimit(resource.{kind}, (3 << 30, 3 << 30)); print(free_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 << 20 < int(done.stdout) < 3 << 30


def test_amounts_in_words():
    assert [format_bytes(n) for n in (5, 2048, 3 << 20, 5 << 29)] == ["5 bytes", "2 KiB", "3 MiB", "2.5 GiB"]
