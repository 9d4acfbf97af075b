"""Texts of the ``DESCR`` of the data sets, one file per data set, with placeholders for what depends on the data."""

from importlib.resources import files


def describe(name: str, **values: object) -> str:
    """Return the description `name` with `values` filled in."""
    return files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").format(**values)
