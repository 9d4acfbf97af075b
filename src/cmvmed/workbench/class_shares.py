"""What a user roughly knows of the class shares: ``class_prior`` in a project file, for the labels that there are."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from warnings import warn

from cmvmed.pages.atomic_file import atomic_file
from cmvmed.workbench.toml_text import SHARES_HINT, toml_line
from cmvmed.workbench.user_errors import ProjectError

Ranges = dict[str, tuple[float, float]]
KEY = "class_prior"
ROUNDING = 1e-9


def ranges_of(class_prior: object) -> Ranges:
    """The ranges in a class prior; none if it is not a dict of numbers and pairs."""
    given = class_prior if isinstance(class_prior, Mapping) else {}
    pairs = {name: value if isinstance(value, (list, tuple)) else (value, value) for name, value in given.items()}
    if not all(len(pair) == 2 and all(map(_is_share, pair)) and pair[0] <= pair[1] for pair in pairs.values()):
        return {}
    return {name: (low, high) for name, (low, high) in pairs.items()}


def prior_of_labeled(class_prior: object, labels: Iterable[object]) -> object:
    """The class prior of the classes that have labels.

    Rows of the other classes exist, and are predicted as one of those that have labels, whose shares may be larger by them.
    """
    labeled = {label for label in labels if label is not None}
    ranges = ranges_of(class_prior)
    missing = [name for name in ranges if name not in labeled]
    if not missing:
        return class_prior
    warn(
        f"class_prior in [model] has {missing[0]!r}, but no row has this label, so it is left out. Correct the name, or "
        "label rows of this class.",
        stacklevel=2,
    )
    more = sum(high for name, (_, high) in ranges.items() if name not in labeled)
    return {name: (low, min(high + more, 1.0)) for name, (low, high) in ranges.items() if name in labeled}


def check_ranges(given: Mapping[str, Any], classes: Iterable[str]) -> Ranges:
    """Ranges by class, or an error that names the class and what to do."""
    known, found = list(classes), {}
    for name, pair in given.items():
        if name not in known:
            raise ValueError(f"There is no class {name!r}.")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(_is_share(value) for value in pair):
            raise ValueError(f"The share of {name!r} must be two numbers between 0 and 100 %: at least and at most.")
        low, high = float(pair[0]), float(pair[1])
        if low > high or high == 0.0:
            raise ValueError(f"The share of {name!r} must be at most as large as its second number, which is above 0.")
        found[name] = (low, high)
    least, most = sum(low for low, _ in found.values()), sum(high for _, high in found.values())
    rest = [name for name in known if name not in found]
    if least > 1.0 + ROUNDING or (rest and least > 1.0 - ROUNDING):
        raise ValueError("The smallest shares sum to 100 % or more; lower some.")
    if most < 1.0 - ROUNDING and not rest:
        raise ValueError("The largest shares sum to less than 100 %; raise some, or leave a class empty.")
    return found


def with_ranges(text: str, ranges: Ranges) -> str:
    """The text of a project file with these ranges in place of those that it has; none if there are none."""
    line = toml_line(KEY, {name: list(pair) for name, pair in ranges.items()}) if ranges else SHARES_HINT
    lines = text.splitlines()
    own = [i for i, old in enumerate(lines) if old.lstrip("# ").partition("=")[0].strip() == KEY]
    section = [i for i, old in enumerate(lines) if old.partition("#")[0].strip() == "[model]"]
    if own:
        lines[own[0]] = line
    elif section:
        lines.insert(section[0] + 1, line)
    else:
        lines += ["", "[model]", line]
    changed = "\n".join(lines) + "\n"
    if ranges_of(tomllib.loads(changed)["model"].get(KEY)) != ranges:
        raise ProjectError(f"The project file cannot be changed here; write {line} into its section [model].")
    return changed


def write_ranges(project_file: Path, ranges: Ranges) -> None:
    """Write the ranges to a project file, completely or not at all."""
    text = with_ranges(project_file.read_text(encoding="utf-8-sig"), ranges)
    with atomic_file(project_file) as part:
        part.write_text(text, encoding="utf-8")


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= 1.0
