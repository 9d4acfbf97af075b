"""Graphs of nearest rows and their kernels."""
