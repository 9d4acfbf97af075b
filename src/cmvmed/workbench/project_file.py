"""The project file ``cmvmed.toml``: what it may say, and errors for what it may not.

Paths are relative to the folder of the project file. Unknown keys and wrong types are errors that name the line.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cmvmed.workbench.tables.columns import KINDS, clean_name
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

DEFAULT_NAME = "cmvmed.toml"
DRAWS = ("random", "per_class", "chosen", "unknown")
SECTIONS = ("data", "windows", "views", "columns", "classes", "model")
CHOICES = {"labels_drawn": DRAWS, "decimal": (".", ","), "label": ("majority", "center"), "end": ("drop", "shift")}
LISTS = ("unlabeled", "ignore", "context", "classes", "label_files", "columns")  # keys of lists of texts
NUMBERS = {"sampling_rate": "a number of Hz", "offset": "a number of seconds"} | dict.fromkeys(
    ("length", "step", "min_overlap"), "a number"
)  # keys of numbers, and what is expected
POSITIVE = ("sampling_rate", "length", "step")
AUTO = "auto"  # features of signals that are chosen by held-out labels
LABEL_COLUMN = "label"  # of the windows of annotated recordings


@dataclass(frozen=True)
class DataSettings:
    """Section ``[data]``.

    Examples
    --------
    >>> from cmvmed.workbench import DataSettings
    >>> DataSettings(path="windows.csv", labels="stroke").unlabeled
    ('',)
    """

    path: str | None = None  # file, folder or pattern of files; None: each view has its own
    id: str | None = None
    labels: str | None = None  # a column, or a file with id and label
    label_column: str | None = None  # of the files of labels
    label_files: tuple[str, ...] = ()  # further files with id and label, which replace earlier labels
    classes: tuple[str, ...] = ()  # all classes; () takes every label that is not in ``unlabeled``
    unlabeled: tuple[str, ...] = ("",)
    labels_drawn: str = "unknown"
    groups: str | None = None
    time: str | None = None  # column of times: the table has one row per sample, and ``id`` names the row or recording
    ignore: tuple[str, ...] = ()
    context: tuple[str, ...] = ()  # columns that the labeling page shows beside a row; () is groups and times
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    day_first: bool | None = None
    sampling_rate: float | None = None


@dataclass(frozen=True)
class WindowSettings:
    """Section ``[windows]``: rows are windows of long recordings.

    Examples
    --------
    >>> from cmvmed.workbench import WindowSettings
    >>> WindowSettings(length=2.0).label
    'majority'
    """

    length: float = 0.0  # seconds
    step: float | None = None  # seconds; None: length
    annotations: str | None = None  # file with recording, start, end and label
    label: str = "majority"
    min_overlap: float = 0.5
    end: str = "drop"
    timezone: str | None = None


@dataclass(frozen=True)
class ViewSettings:
    """Section ``[views.<name>]``: columns of the table, of a file of its own, or sound files.

    Examples
    --------
    >>> from cmvmed.workbench import ViewSettings
    >>> ViewSettings("gyroscope", columns=("gyr_*",)).columns
    ('gyr_*',)
    """

    name: str
    columns: tuple[str, ...] = ()  # names, prefixes or patterns; () is all columns of ``path``
    path: str | None = None
    files: str | None = None  # pattern of sound files below the path of the data; "*" is the identifier of a row
    channel: int | None = None
    features: str | None = None  # of signals: "auto", also if None, or a kind of cmvmed.features.SignalFeatures
    sampling_rate: float | None = None  # Hz: that of series whose file has none; others are resampled to it
    offset: float = 0.0  # seconds to add to the times of the sensor, whose clock is wrong


@dataclass(frozen=True)
class ProjectSettings:
    """What a project file says.

    Examples
    --------
    >>> from cmvmed.workbench import DataSettings, ProjectSettings, ViewSettings
    >>> data = DataSettings(path="windows.csv", labels="stroke")
    >>> settings = ProjectSettings(data, (ViewSettings("acc", ("acc_*",)),), model={"temperature": 0.3})
    >>> [view.name for view in settings.views]
    ['acc']
    """

    data: DataSettings
    views: tuple[ViewSettings, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)  # section [columns]
    model: Mapping[str, Any] = field(default_factory=dict)
    windows: WindowSettings | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)  # section [classes]: label of the data -> class


def read_project_file(path: Path, changes: Mapping[str, Any] | None) -> ProjectSettings:
    """Read a project file; ``changes`` are values by key, such as ``{"model.temperature": 0.3}``."""
    if path.is_dir():
        path = path / DEFAULT_NAME
    if not path.is_file():
        raise ProjectError(
            f"There is no project file {str(path)!r}. `cmvmed init DATA` writes one; --project FILE uses another."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path.name} is not UTF-8 text; save it as UTF-8.") from error
    return parse_project(text, path.name, changes or {})


def parse_project(
    text: str, source: str = DEFAULT_NAME, changes: Mapping[str, Any] = MappingProxyType({})
) -> ProjectSettings:
    """The settings in the text of a project file, after changes of single keys."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(
            f'{source} is not valid TOML: {error}. Texts need quotation marks, as in id = "name"; a backslash in a path '
            "needs a second one."
        ) from error
    for key, value in changes.items():
        _change(content, key, value)
    reader = _Reader(source, text)
    reader.known("", content, SECTIONS)
    for section in SECTIONS:
        reader.table(section, content.get(section, {}))
    data = reader.data(content.get("data", {}))
    windows = reader.windows(content["windows"]) if "windows" in content else None
    views = tuple(reader.view(name, entry) for name, entry in content.get("views", {}).items())
    _check_whole(source, data, views, windows)
    if windows is not None and windows.annotations is not None and data.labels is None:
        data = replace(data, labels=LABEL_COLUMN)
    kinds = reader.kinds(content.get("columns", {}))
    model = reader.model(content.get("model", {}))
    return ProjectSettings(data, views, kinds, model, windows, reader.renamed(content.get("classes", {})))


@dataclass(frozen=True)
class _Reader:
    """Reads the entries of one project file."""

    source: str
    text: str

    def fail(self, key: str, message: str) -> ProjectError:
        """An error that names the line of the key."""
        last = key.rpartition(".")[2]
        lines = [line.strip().partition("=")[0].strip().strip("\"'[]") for line in self.text.splitlines()]
        found = next((i for i, start in enumerate(lines, 1) if start in (last, key)), None)
        return ProjectError(f"{self.source}{'' if found is None else f', line {found}'}: {message}")

    def known(self, section: str, entries: Mapping[str, Any], names: tuple[str, ...]) -> None:
        for key in entries:
            if key not in names:
                what = f"[{section}] has no key {key!r}" if section else f"there is no section [{key}]"
                raise self.fail(key, f"{what}.{did_you_mean(key, names)} It may have: {', '.join(names)}.")

    def table(self, section: str, entry: object) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise self.fail(section, f"{section} must be a section [{section}], but is {entry!r}.")
        return entry

    def data(self, entries: Mapping[str, Any]) -> DataSettings:
        self.known("data", entries, tuple(f.name for f in fields(DataSettings)))
        given = {key: self._value("data", key, value) for key, value in entries.items()}
        given |= {key: tuple(map(clean_name, given[key])) for key in ("classes", "unlabeled") if key in given}
        if len(given.get("separator", ",")) != 1:
            raise self.fail(
                "separator", f'separator is {given["separator"]!r}, but must be one character, such as ";".'
            )
        if given.get("decimal") == "," and given.get("separator") == ",":
            raise self.fail("decimal", "decimal and separator are both a comma; one of them must be another character.")
        return DataSettings(**given)

    def windows(self, entries: Mapping[str, Any]) -> WindowSettings:
        self.known("windows", entries, tuple(f.name for f in fields(WindowSettings)))
        given = {key: self._value("windows", key, value) for key, value in entries.items()}
        if "length" not in given:
            raise self.fail("windows", "[windows] needs length, the seconds of a window.")
        if not 0 <= given.get("min_overlap", 0.5) <= 1:
            raise self.fail("min_overlap", f"min_overlap is {given['min_overlap']:g}, but must be between 0 and 1.")
        return WindowSettings(**given)

    def view(self, name: str, entry: object) -> ViewSettings:
        section = f"views.{name}"
        entries = self.table(section, {"columns": entry} if isinstance(entry, (str, list)) else entry)
        self.known(section, entries, tuple(f.name for f in fields(ViewSettings) if f.name != "name"))
        given = {key: self._value(section, key, value) for key, value in entries.items()}
        if not given.keys() & {"columns", "path", "files"} or given.get("columns") == ():
            raise self.fail(
                section,
                f'view {name!r} has no columns; give columns = "prefix_*" or a list of names, or remove the view.',
            )
        if "files" in given and "columns" in given:
            raise self.fail(
                section, f"view {name!r} has both columns and files; keep columns of a table, or sound files."
            )
        if "channel" in given and "files" not in given:
            raise self.fail(section, f'view {name!r} has a channel but no sound files; add files = "*.wav".')
        return ViewSettings(name, **given)

    def _value(self, section: str, key: str, value: object) -> Any:
        """The value of a key, if it is of the type that the key has."""
        if key in LISTS:
            return self._texts(section, key, value)
        if key in NUMBERS:
            number = float(self._typed(section, key, value, (int, float), NUMBERS[key]))
            if not isfinite(number) or (key in POSITIVE and number <= 0.0):
                must = "positive and finite" if key in POSITIVE else "finite"
                raise self.fail(key, f"{key} in [{section}] is {number:g}, but must be {must}.")
            return number
        if key == "day_first":
            return self._typed(section, key, value, bool, "true or false")
        if key == "channel":
            return self._typed(section, key, value, int, "the number of a channel, from 0")
        if key == "features":
            return self._features(section, value)
        expected = "a path or pattern of files" if section.startswith("views.") else 'a text, such as "name"'
        text = self._typed(section, key, value, str, expected)
        if text not in CHOICES.get(key, (text,)):
            raise self.fail(key, f"{key} in [{section}] is {text!r}, but must be one of {abbreviate(CHOICES[key])}.")
        return text

    def _features(self, section: str, value: object) -> str:
        kind = str(self._typed(section, "features", value, str, '"auto" or a kind of features'))
        if kind == AUTO:
            return kind
        from cmvmed.features.signal_features import check_kinds  # slow to import

        try:
            check_kinds(kind)
        except ValueError as error:
            known = str(error).partition(", got")[0].replace("kind must be one of", '"auto", or one of')
            raise self.fail("features", f"features in [{section}] is {kind!r}, but must be {known}.") from error
        return kind

    def kinds(self, entries: Mapping[str, Any]) -> Mapping[str, str]:
        for column, kind in entries.items():
            if kind not in KINDS:
                hint = did_you_mean(str(kind), KINDS)
                raise self.fail(
                    column,
                    f"[columns] gives {column!r} the kind {kind!r}; the kinds are {abbreviate(KINDS)}.{hint}",
                )
        return dict(entries)

    def renamed(self, entries: Mapping[str, Any]) -> Mapping[str, str]:
        for label, name in entries.items():
            if not isinstance(name, str):
                raise self.fail(
                    label, f'[classes] renames {label!r} to {name!r}, but must say a text, as in {label} = "walk".'
                )
            if clean_name(name) in entries and clean_name(name) != label:
                raise self.fail(
                    label, f"[classes] renames {label!r} to {name!r}, which is renamed too; give the last name."
                )
        return {clean_name(label): clean_name(name) for label, name in entries.items()}

    def model(self, entries: Mapping[str, Any]) -> Mapping[str, Any]:
        if entries.keys() <= {"class_prior"}:  # which the labeling page writes; importing estimators is slow
            return dict(entries)
        from cmvmed import CMVMED

        fixed = {"views": "[views]", "unlabeled": "unlabeled in [data]", "labels_drawn": "labels_drawn in [data]"}
        for key in entries:
            if key in fixed:
                raise self.fail(key, f"[model] must not set {key!r}; the project file says it in {fixed[key]}.")
        self.known("model", entries, tuple(name for name in signature(CMVMED).parameters if name not in fixed))
        return dict(entries)

    def _texts(self, section: str, key: str, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, (dict, list)):
                raise self.fail(key, f"{key} in [{section}] must be a text or a list of texts, but has {item!r}.")
        return tuple(str(item) for item in items)

    def _typed(self, section: str, key: str, value: Any, types: type | tuple[type, ...], expected: str) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise self.fail(key, f"{key} in [{section}] is {value!r}, but must be {expected}.")
        if isinstance(value, str) and not value:
            raise self.fail(key, f"{key} in [{section}] is empty; give {expected}, or remove the line.")
        return value


def _change(content: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a key such as ``model.temperature`` or ``views.gyroscope.columns``."""
    *sections, last = key.split(".")
    if not sections or not all([*sections, last]):
        raise ProjectError(
            f"{key!r} is not a key of a project file; write for instance model.temperature or data.labels."
        )
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise ProjectError(f"{key!r} is not a key of a project file: {section!r} is a value, not a section.")
    content[last] = value


def _check_whole(
    source: str, data: DataSettings, views: tuple[ViewSettings, ...], windows: WindowSettings | None
) -> None:
    if data.time is not None and data.id is None and windows is None:
        raise ProjectError(
            f"{source} sets time in [data], so each line of the table is one sample, but no id. Set id to the column that names "
            "the row of each sample, or add a section [windows] to cut windows."
        )
    if windows is not None and any(view.path is not None for view in views):
        raise ProjectError(
            f"{source}: with [windows] all views are cut from the path in [data]; remove their own paths."
        )
    moved = next((view.name for view in views if view.offset), None)
    if windows is None and moved is not None:
        raise ProjectError(
            f"{source}: view {moved!r} has an offset, which is for windows of long recordings only; add a section "
            "[windows], or remove the offset."
        )
    if not views:
        raise ProjectError(
            f'{source} has no views; add for instance a section [views.sensor] with columns = "sensor_*". `cmvmed init` '
            "guesses them."
        )
    for view in views:
        if data.path is None and view.path is None:
            raise ProjectError(
                f"{source} has no path in [data], and view {view.name!r} has none of its own; say where the data are."
            )
    common = [view for view in views if view.path is None]
    sound = next((view.name for view in common if view.files is not None), None)
    table = next((view.name for view in common if view.files is None), None)
    if sound is not None and table is not None:
        raise ProjectError(
            f"{source}: view {sound!r} has sound files and view {table!r} columns of the same path; give view {table!r} a path of "
            "its own."
        )
