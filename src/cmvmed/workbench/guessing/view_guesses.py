"""The views of a table: columns of the same sensor, with the same prefix, or of the same kind."""

import re
from collections.abc import Container, Sequence

from cmvmed.recordings import SensorSignals
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.guessing.column_guesses import SEPARATED, TableWithKinds
from cmvmed.workbench.guessing.guesses import Guess
from cmvmed.workbench.project_file import AUTO, DataSettings, ViewSettings
from cmvmed.workbench.readers import is_pattern
from cmvmed.workbench.recording_sources import channel_columns
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import ProjectError, abbreviate, plural

__all__ = ["guess_views", "view_name"]

MAX_VIEWS = 24  # more prefixes than this are no sensors


def guess_views(rows: TableWithKinds, data: DataSettings) -> tuple[tuple[ViewSettings, ...], list[Guess]]:
    """Columns of the same sensor, with the same prefix, or of the same kind; each column of texts is a view."""
    table = rows.table
    taken = {data.id, data.labels, data.groups, data.time, *data.ignore}
    columns = [column for column in map(str, table.frame.columns) if column not in taken]
    kinds = rows.kinds
    texts = [column for column in columns if kinds[column] == "text"]
    others = [column for column in columns if kinds[column] not in ("text", "identifier", "empty", "unusable")]
    sensors = _by_sensor(table)
    groups, how = _by_prefix([*others, *table.signals]) if not sensors else (None, "")
    if groups is None:
        numbers = [column for column in others if kinds[column] in ("number", "date")]
        groups = {"numbers": numbers, "categories": [c for c in others if c not in numbers]}
        groups |= sensors or {name: [name] for name in table.signals}
        how = "by sensor" if sensors and not others else "by what the columns hold"
    groups = _with_view_names([*groups.items(), *((column, [column]) for column in texts)])
    if not groups:
        raise ProjectError(
            f"{table.source} has no column that can be learned from: besides id, labels and groups it has "
            f"{abbreviate(data.ignore) or 'nothing'}. Check the separator and the file."
        )
    usable = [*columns, *table.signals]
    signals = channel_columns(table, data, data.id) if data.time is not None else table.signals
    views = tuple(
        ViewSettings(name, columns=_patterns(members, usable), features=_features_of(members, signals))
        for name, members in groups.items()
    )
    shown = ", ".join(f"{name} ({_members_shown(name, members)})" for name, members in groups.items())
    first = views[0]
    line = toml_line("columns", first.columns[0] if len(first.columns) == 1 else first.columns).partition("\n")[0]
    return views, [Guess(f"{plural(len(views), 'view')} {how}: {shown}", f"[views.{first.name}] {line}")]


def _members_shown(name: str, members: Sequence[str]) -> str:
    """How many columns a view has, and which, if its name does not say it."""
    count = plural(len(members), "column")
    return count if all(member.startswith(name) for member in members) else f"{count}: {abbreviate(members)}"


def _features_of(columns: Sequence[str], signals: Container[str]) -> str | None:
    """Features of a view, if it has signals."""
    return AUTO if any(column in signals for column in columns) else None


def _by_sensor(table: RawTable) -> dict[str, list[str]]:
    """The channels of each sensor, if the file says which channels belong together."""
    sensors: dict[str, list[str]] = {}
    for name, signal in table.signals.items():
        if isinstance(signal.items, SensorSignals):
            sensors.setdefault(signal.items.name, []).append(name)
    return sensors


def _with_view_names(groups: Sequence[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Columns by names that a section can have; groups that get the same name become one."""
    named: dict[str, list[str]] = {}
    for name, members in groups:
        if members:
            named.setdefault(view_name(name), []).extend(members)
    return named


def _by_prefix(columns: Sequence[str]) -> tuple[dict[str, list[str]] | None, str]:
    """Columns by the first word of their names, if these are as many as a machine has sensors."""
    for depth in (1, 2):
        groups: dict[str, list[str]] = {}
        for column in columns:
            groups.setdefault(_prefix(column, depth), []).append(column)
        shared = {name: members for name, members in groups.items() if len(members) > 1 or SEPARATED.search(members[0])}
        rest = [column for name, members in groups.items() if name not in shared for column in members]
        if 2 <= len(shared) <= MAX_VIEWS and len(rest) <= 0.5 * len(columns) and _is_repeated(shared, columns):
            return {**shared, "other": rest}, "by prefix"
    return None, ""


def _is_repeated(groups: dict[str, list[str]], columns: Sequence[str]) -> bool:
    """Whether prefixes join columns: on average at least two, or the same endings come under each prefix."""
    endings = [{column[len(name) :] for column in members} for name, members in groups.items()]
    return len(columns) >= 2 * len(groups) or all(ending == endings[0] for ending in endings)


def _prefix(column: str, depth: int) -> str:
    words = [word for word in SEPARATED.split(column) if word]
    if len(words) > depth:
        end = 0
        for word in words[:depth]:
            end = column.index(word, end) + len(word)
        return column[:end]
    letters = re.match(r"^([^\d]+)\d+$", column)
    return letters[1] if letters else column


def _patterns(members: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """A pattern that matches exactly these columns, or their names."""
    prefix = _common_start(members) if len(members) > 1 else ""
    words = SEPARATED.search(prefix)
    candidates = [prefix]
    if words:
        candidates.insert(0, prefix[: [m.end() for m in SEPARATED.finditer(prefix)][-1]])
    for candidate in candidates:
        plain = candidate and not is_pattern(candidate)
        if plain and [column for column in columns if column.startswith(candidate)] == list(members):
            return (f"{candidate}*",)
    return tuple(members)


def _common_start(names: Sequence[str]) -> str:
    """The longest text that all names begin with."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def view_name(text: str) -> str:
    """A text as the name of a view, which a section of the project file can have."""
    return re.sub(r"[^\w-]+", "_", text).strip("_") or "view"
