"""The command line: ``main`` and one module per command, which defines it as ``command``."""
