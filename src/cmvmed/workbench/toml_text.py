"""Writes a project file that people read: short, with a comment on each line that may have to be changed."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cmvmed.workbench.project_file import DataSettings, ProjectSettings, ViewSettings, WindowSettings

COMMENTS = {
    "path": "file, folder or pattern: csv, tsv, xlsx, parquet, feather, npz, ts, h5, wav, flac, edf, mseed",
    "time": "each line is a sample at this time; id names the row or recording",
    "length": "seconds of a window",
    "step": "seconds between the starts of windows",
    "annotations": "file with recording, start, end and label",
    "id": "identifies a row",
    "labels": "a column, or a file with id and label",
    "label_column": "column of the files of labels",
    "label_files": "further files with id and label, such as those of cmvmed suggest",
    "unlabeled": "values that mean: not labeled yet",
    "classes": "all classes; any other label is an error",
    "labels_drawn": "random | per_class | chosen | unknown: how the labeled rows were chosen",
    "groups": "person, day or machine of a row: the accuracy is that on new ones",
    "ignore": "columns that are in no view on purpose",
    "separator": "between the cells of a line",
    "decimal": "decimal sign",
    "sampling_rate": "samples per second",
    "features": "auto: chosen by held-out labels | statistics | minirocket | mfcc | ...",
}
SHOWN_DEFAULTS = ("unlabeled", "labels_drawn")
COMMENT_COLUMN = 34
SHARES_HINT = "# class_prior = { walk = [0.3, 0.6], fall = [0, 0.02] }  # roughly how often is each class?"
GROUPS_HINT = '# groups = "COLUMN"'


def project_text(settings: ProjectSettings, header: Iterable[str] = ()) -> str:
    """The text of a project file; reading it gives the same settings."""
    lines = [*(f"# {line}" for line in header), "[data]"]
    defaults = DataSettings()
    for key in DataSettings.__dataclass_fields__:
        value = getattr(settings.data, key)
        if value != getattr(defaults, key) or key in SHOWN_DEFAULTS:
            lines.append(_with_comment(toml_line(key, value), COMMENTS.get(key, "")))
        elif key == "groups":
            lines.append(_with_comment(GROUPS_HINT, COMMENTS[key]))
    if settings.windows is not None:
        lines += ["", "[windows]"]
        for key in WindowSettings.__dataclass_fields__:
            value = getattr(settings.windows, key)
            if value != getattr(WindowSettings(), key):
                lines.append(_with_comment(toml_line(key, value), COMMENTS.get(key, "")))
    for view in settings.views:
        lines += ["", f"[views.{_key(view.name)}]", *_view_lines(view)]
    if settings.kinds:
        lines += ["", "[columns]", *(toml_line(name, kind) for name, kind in settings.kinds.items())]
    if settings.renamed:
        lines += ["", "[classes]", *(toml_line(label, name) for label, name in settings.renamed.items())]
    lines += ["", "[model]                           # parameters of CMVMED, all optional"]
    lines += [toml_line(key, value) for key, value in settings.model.items()]
    lines += [SHARES_HINT] * ("class_prior" not in settings.model)
    return "\n".join(lines) + "\n"


def toml_line(key: str, value: Any) -> str:
    """``key = value``."""
    return f"{_key(key)} = {_value(value)}"


def _view_lines(view: ViewSettings) -> list[str]:
    lines = [] if view.path is None else [toml_line("path", view.path)]
    if view.columns:
        lines.append(toml_line("columns", view.columns[0] if len(view.columns) == 1 else view.columns))
    if view.files is not None:
        lines.append(_with_comment(toml_line("files", view.files), "the * identifies a row"))
    if view.channel is not None:
        lines.append(toml_line("channel", view.channel))
    if view.features is not None:
        lines.append(_with_comment(toml_line("features", view.features), COMMENTS["features"]))
    if view.sampling_rate is not None:
        lines.append(_with_comment(toml_line("sampling_rate", view.sampling_rate), COMMENTS["sampling_rate"]))
    if view.offset:
        lines.append(_with_comment(toml_line("offset", view.offset), "seconds to add to the times of this sensor"))
    return lines


def _with_comment(line: str, comment: str) -> str:
    return f"{line:{COMMENT_COLUMN - 1}} # {comment}" if comment else line


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        items = [_value(item) for item in value]
        inline = f"[{', '.join(items)}]"
        return inline if len(inline) <= 100 else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(toml_line(str(key), item) for key, item in value.items()) + " }"
    return repr(value)


def _text(text: str) -> str:
    """A basic string of TOML."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(named.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'
