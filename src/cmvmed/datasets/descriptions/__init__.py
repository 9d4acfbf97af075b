"""The texts of the Bunches' ``DESCR``, one file a data set, with gaps for what is only known after loading."""

from importlib.resources import files


def describe(name: str, **facts: object) -> str:
    """Return the description `name` with `facts` filled in."""
    return files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").format(**facts)
