"""Benchmarks: accuracy against peers, time against the bare linear algebra. Run as ``python -m benchmarks.NAME``."""
