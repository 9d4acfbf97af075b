"""The commands of the command line: one module each, named as the command is, which holds it as ``command``."""
