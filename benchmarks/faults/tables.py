"""Tables of new rows in another form: separators, decimal signs, encodings, line ends, quotes, orders and file formats.

A trained project reads each form as the same rows, or says what it cannot read: in an error, or in a message that names the
column.
"""

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault, fresh_folder, workspace

CASES = {"ci": 120, "nightly": 20_000}
N_ROWS = 40
NUMBERS = ("a_small", "a_large", "a_signed", "b_whole")
PROJECT = """
[data]
path = "rows.csv"
id = "id"
labels = "label"
[views.a]
columns = "a_*"
[views.b]
columns = "b_*"
"""
FORMATS = ("csv", "csv", "csv", "csv", "parquet", "feather", "xlsx")
SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252")
LINE_ENDS = ("\n", "\r\n", "\r", "\n\n")
SPELLINGS: dict[str, Callable[[float], str]] = {
    "shortest": repr,
    "exponent": lambda x: f"{x:.17e}",
    "sign": lambda x: f"{x:+.17g}",
    "decimals": lambda x: f"{x:.3f}",
    "thousands": lambda x: f"{x:,.3f}",
}


@dataclass(frozen=True)
class Case:
    """How the new rows are written."""

    format: str = "csv"
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    line_end: str = "\n"
    spelling: str = "shortest"
    quoted: bool = False
    blanks: bool = False
    texts: bool = False  # numbers as texts in a format that has numbers
    order: int = 0  # seed of the order of the columns, 0 for that of training
    extra: bool = False
    n_rows: int = N_ROWS
    training_decimal: str = "."
    seed: int = field(default=0, metadata={"shrinks": False})

    @property
    def group(self) -> str:
        """The line of the table."""
        return self.format


def draw(rng: np.random.Generator, number: int) -> Case:
    """Formats take turns."""
    return Case(
        format=FORMATS[number % len(FORMATS)],
        separator=str(rng.choice(SEPARATORS)),
        decimal=str(rng.choice([".", ","])),
        encoding=str(rng.choice(ENCODINGS)),
        line_end=str(rng.choice(LINE_ENDS)),
        spelling=str(rng.choice(list(SPELLINGS))),
        quoted=bool(rng.random() < 0.3),
        blanks=bool(rng.random() < 0.2),
        texts=bool(rng.random() < 0.3),
        order=int(rng.integers(100)) if rng.random() < 0.5 else 0,
        extra=bool(rng.random() < 0.2),
        n_rows=int(rng.choice([1, 2, 5, N_ROWS])),
        training_decimal=str(rng.choice([".", ","])),
        seed=int(rng.integers(50)),
    )


def check(case: Case) -> str:
    """Read the rows in two forms."""
    from cmvmed.workbench import ProjectError

    folder = fresh_folder()
    try:
        path = write(folder, case)
        try:
            found = project(case.training_decimal).read_new(path)
        except ProjectError:
            return CLEAR_ERROR
    finally:
        shutil.rmtree(folder)
    ids = new_rows(case.seed)["id"].tolist()[: case.n_rows]
    if found.ids.tolist() != ids:
        raise Fault("other identifiers", f"{found.ids.tolist()} instead of {ids}")
    outcome = HELD
    for encoder in project(case.training_decimal).encoders:
        expected = expected_views(case)[encoder.name][: case.n_rows]
        other = ~np.isclose(found.views[encoder.name], expected, rtol=1e-9, atol=1e-12).all(axis=0)
        for column, name in enumerate(encoder.feature_names):
            if other[column] and any(f"'{name}'" in message for message in found.messages):
                outcome = CLEAR_ERROR
            elif other[column]:
                pair = (found.views[encoder.name][:, column].tolist(), expected[:, column].tolist())
                raise Fault("other values", f"{name}: {pair[0]} instead of {pair[1]}, and nothing is said")
    return outcome


def new_rows(seed: int) -> pd.DataFrame:
    """Rows with small, large and signed numbers of three decimals, whole numbers, dates, truth values and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"r{i:02d}" for i in range(N_ROWS)],
            "a_small": np.round(rng.random(N_ROWS), 3),
            "a_large": np.round(rng.random(N_ROWS) * 5000, 3),
            "a_signed": np.round(rng.normal(size=N_ROWS) * 20, 3),
            "b_whole": rng.integers(1000, 3000, size=N_ROWS).astype(float),
            "b_when": pd.date_range("2025-01-01", periods=N_ROWS, freq="9h").strftime("%Y-%m-%d %H:%M"),
            "b_on": rng.choice(["yes", "no"], size=N_ROWS),
            "b_place": rng.choice(["Gr\u00fcn", "Rot", "Blau"], size=N_ROWS),
        }
    )


@cache
def project(decimal: str) -> Any:
    """The project, whose training rows have a decimal sign."""
    from cmvmed.workbench import Project

    folder = workspace() / f"table{ord(decimal)}"
    folder.mkdir()
    rows = new_rows(-1 % 2**31).assign(label=["up", "down"] * (N_ROWS // 2))
    (folder / "cmvmed.toml").write_text(PROJECT, encoding="utf-8")
    rows.to_csv(folder / "rows.csv", index=False, sep=";" if decimal == "," else ",", decimal=decimal)
    found = Project.load(folder / "cmvmed.toml")
    found.read()
    return found


@cache
def _expected(decimal: str, seed: int) -> dict[str, np.ndarray]:
    path = workspace() / f"expected{ord(decimal)}_{seed}.parquet"
    new_rows(seed).to_parquet(path)
    return {name: np.asarray(view) for name, view in project(decimal).read_new(path).views.items()}


def expected_views(case: Case) -> dict[str, np.ndarray]:
    """The encoded rows, as read from a file of numbers."""
    return _expected(case.training_decimal, case.seed)


def spelled(case: Case) -> pd.DataFrame:
    """The rows with numbers as texts."""
    rows = new_rows(case.seed)
    swapped = str.maketrans(".,", ",.") if case.decimal == "," else {}
    for name in NUMBERS:
        rows[name] = [SPELLINGS[case.spelling](x).translate(swapped) for x in rows[name]]
    return rows


def write(folder: Path, case: Case) -> Path:
    """Write the new rows in the form of a case."""
    rows = (spelled(case) if case.format == "csv" or case.texts else new_rows(case.seed)).head(case.n_rows)
    if case.extra:
        rows["note"] = "a, b; c"
    names = list(rows.columns)
    if case.order:
        names = [names[i] for i in np.random.default_rng(case.order).permutation(len(names))]
    rows, path = rows[names], folder / f"new.{case.format}"
    if case.format == "parquet":
        rows.to_parquet(path)
    elif case.format == "feather":
        rows.to_feather(path)
    elif case.format == "xlsx":
        rows.to_excel(path, index=False)
    else:
        path.write_bytes(text(rows, case).encode(case.encoding))
    return path


def text(rows: pd.DataFrame, case: Case) -> str:
    """The rows as delimited text."""
    import csv

    if case.blanks and not case.quoted:
        rows = rows.rename(columns=lambda name: f" {name} ").map(lambda cell: f" {cell} ")
    target = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if case.quoted else csv.QUOTE_MINIMAL
    rows.to_csv(target, index=False, sep=case.separator, quoting=quoting, lineterminator=case.line_end)
    return target.getvalue()
