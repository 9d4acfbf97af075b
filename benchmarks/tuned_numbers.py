"""The table of docs/defaults.md: name, value and reason of every tuned number, read from cmvmed/auto/tuning.py."""

import ast
import inspect
from itertools import pairwise

from cmvmed.auto import tuning

CLASS = tuning.Tuning


def reasons() -> dict[str, str]:
    """The text below each field of ``Tuning``."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(CLASS)).body if isinstance(node, ast.ClassDef))
    return {
        field.target.id: text.value.value
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def table() -> str:
    """The table in Markdown."""
    values = CLASS()
    lines = ["| number | reason |", "| --- | --- |"]
    lines += [f"| `{name}={getattr(values, name)}` | {' '.join(text.split())} |" for name, text in reasons().items()]
    return "\n".join(lines).replace("``", "`")
