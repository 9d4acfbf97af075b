"""Tables with one row per case: a file, or a folder of files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cmvmed.workbench.column_kinds import as_text
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.guessing.column_guesses import (
    TableWithKinds,
    guess_groups,
    guess_id,
    guess_ignored,
    guess_labels,
    read_with_kinds,
)
from cmvmed.workbench.guessing.guesses import Found, Guess, relative_path
from cmvmed.workbench.guessing.label_guesses import with_label_file, with_markers
from cmvmed.workbench.guessing.long_table_guesses import guess_long_table, long_columns
from cmvmed.workbench.guessing.view_guesses import guess_views, view_name
from cmvmed.workbench.project_file import AUTO, DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.readers import table_files
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import abbreviate, plural

__all__ = ["guess_file", "guess_folder"]


def guess_file(path: Path, folder: Path) -> Found:
    """A table, with a file of labels beside it if no column holds them."""
    rows = read_with_kinds(path)
    samples = long_columns(rows.table, rows.kinds, guess_id(rows))
    if samples is not None:
        return guess_long_table(rows, samples, relative_path(path, folder))
    data, guesses = _guess_data(rows, relative_path(path, folder))
    if data.labels is None:
        data, guesses = with_label_file(path.parent, folder, data, guesses, exclude=[path])
    views, about_views = guess_views(rows, data)
    return ProjectSettings(data, views), [*guesses, *about_views], list(rows.table.messages)


def guess_folder(path: Path, folder: Path) -> Found:
    """A folder of tables: one table, parts of one table, or one table per view."""
    label_files = [file for file in table_files(path) if "label" in file.stem.casefold()]
    files = [file for file in table_files(path) if file not in label_files] or label_files
    tables = [read_with_kinds(file) for file in files]
    if len(files) == 1:
        data, guesses = _guess_data(tables[0], relative_path(files[0], folder))
        views, about_views = guess_views(tables[0], data)
    else:
        data, guesses, views, about_views = _guess_several(path, folder, files, tables)
    if data.labels is None or (label_files and files != label_files):
        data, guesses = with_label_file(path, folder, data, guesses, exclude=files)
    return (
        ProjectSettings(data, views),
        [*guesses, *about_views],
        [said for rows in tables for said in rows.table.messages],
    )


def _guess_several(
    path: Path, folder: Path, files: Sequence[Path], looked: Sequence[TableWithKinds]
) -> tuple[DataSettings, list[Guess], tuple[ViewSettings, ...], list[Guess]]:
    tables = [rows.table for rows in looked]
    first = tables[0]
    ids = [guess_id(rows) for rows in looked]
    alike = all(table.names == first.names for table in tables)
    same_id = len(set(ids)) == 1 and ids[0] is not None
    keys = [_keys(table, ids[0]) for table in tables] if same_id else []
    overlap = bool(keys) and len(set.intersection(*keys)) > 0
    same_rows = len({table.n_rows for table in tables}) == 1
    if alike and not overlap and not (same_rows and not same_id):
        suffix = files[0].suffix
        together = read_with_kinds(path / f"*{suffix}")
        data, guesses = _guess_data(together, relative_path(path, folder) + f"/*{suffix}")
        views, about = guess_views(together, data)
        what = f"the {len(files)} files have the same columns and different rows: they are one table"
        return data, [Guess(what, toml_line("path", data.path)), *guesses], views, about
    data, guesses = _guess_data(looked[0], None)
    for rows in looked[1:]:
        if data.labels is None:
            data = replace(data, labels=guess_labels(rows, [data.id or ""]))
    own = tuple(
        ViewSettings(view_name(file.stem), path=relative_path(file, folder), features=AUTO if table.signals else None)
        for file, table in zip(files, tables, strict=True)
    )
    how = f"rows with the same {ids[0]!r} belong together" if overlap else "rows belong together in their order"
    said = Guess(f"each of the {len(files)} files is a view; {how}", toml_line("path", own[0].path))
    if len({(table.separator, table.decimal) for table in tables}) > 1:
        data = replace(data, separator=None, decimal=None)
    return replace(data, ignore=()), guesses, own, [said]


def _keys(table: RawTable, column: str | None) -> set[str]:
    return set(map(as_text, table.frame[column].astype(object)))


def _guess_data(rows: TableWithKinds, path: str | None) -> tuple[DataSettings, list[Guess]]:
    guesses: list[Guess] = []
    table = rows.table
    identifier = guess_id(rows)
    labels = guess_labels(rows, [identifier or ""])
    groups = guess_groups(rows, [identifier or "", labels or ""])
    decimal = None if table.decimal == "." else table.decimal
    data = DataSettings(
        path=path, id=identifier, labels=labels, groups=groups, separator=table.separator, decimal=decimal
    )
    if identifier is not None:
        guesses.append(Guess(f"{identifier!r} identifies a row", toml_line("id", identifier)))
    if labels is not None:
        data, about = with_markers(table, replace(data, labels=labels))
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    if groups is not None:
        n_groups = table.frame[groups].nunique()
        guesses.append(Guess(f"{groups!r} holds {plural(n_groups, 'group')} of rows", toml_line("groups", groups)))
    ignored = guess_ignored(rows, [name for name in (identifier, labels, groups) if name is not None])
    if ignored:
        data = replace(data, ignore=tuple(ignored))
        what = f"{abbreviate(ignored)} {'is' if len(ignored) == 1 else 'are'} not learned from (a time, an identifier or empty)"
        guesses.append(Guess(what, toml_line("ignore", ignored)))
    return data, guesses
