"""``cmvmed predict``: classes and probabilities of new rows, and reasons if asked for, from a model file alone."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from cmvmed.cli.project_options import (
    check_table,
    collected_warnings,
    force_option,
    json_option,
    model_option,
    open_model,
    show,
    table_option,
    table_writer,
)
from cmvmed.cli.train_command import progress_bar
from cmvmed.pages.formatting import plural

if TYPE_CHECKING:
    import pandas as pd

    from cmvmed.workbench import TrainedProject

BAR_LENGTH = 10_000


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@model_option
@table_option
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of rows whose prediction set may lack the true class.",
)
@click.option("--explain", is_flag=True, help="Add what each view contributes; takes several times as long.")
@force_option
@json_option
def command(
    data: Path, model: Path, output: Path | None, alpha: float, explain: bool, force: bool, as_json: bool
) -> None:
    """Predict the rows of DATA, a file or folder like the training data.

    Columns are found by name, in any order and format. A view without columns or files counts as absent. The project
    file and the training data are not needed. If the rows differ from the training rows, a warning names the sensor.
    A CSV or Parquet file of numbers is read some rows at a time, so it may be larger than memory.

    \b
    Examples:
      cmvmed predict new.csv -o predictions.csv --explain
      cmvmed predict new.parquet -m other.cmvmed -o predictions.parquet --alpha 0.05
      cmvmed predict new.csv | cut -d, -f1,2
      cmvmed predict new.csv --json | jq '.predictions[] | select(.missing_views != "")'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    if output is not None:
        check_table(output, force=force)
    from cmvmed.workbench.tables.delimited import NotInParts
    from cmvmed.workbench.user_errors import ProjectError

    with TemporaryDirectory() as folder:
        target = Path(folder, "shown.csv") if output is None else output
        options: dict[str, Any] = {"alpha": alpha, "explain": explain}
        predict: Callable[..., _Predicted] = partial(
            _predict, open_model(model), data, target, options, keep=as_json and output is None
        )
        try:
            found = predict()
        except (NotInParts, ProjectError):  # errors name rows of the whole table
            found = predict(whole=True)
        for message in [] if as_json else found.notes:
            show("note", message)
        for message in [] if as_json else found.warnings:
            show("warning", message)
        if as_json:
            click.echo(json.dumps(_as_json(found, output), indent=2))
        elif output is None:
            with target.open(encoding="utf-8", newline="") as shown:
                copyfileobj(shown, sys.stdout)
        else:
            click.echo(f"{output}: {_summary(found)}")


@dataclass
class _Predicted:
    """What is said of predictions that are written."""

    n_rows: int = 0
    classes: Counter[Any] = field(default_factory=Counter)
    n_missing: int = 0
    n_novel: int = 0
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    frames: list[pd.DataFrame] = field(default_factory=list)  # if all rows are to be printed as JSON

    def add(self, predictions: pd.DataFrame) -> None:
        """Count some rows."""
        self.n_rows += len(predictions)
        self.classes.update(predictions["class"].tolist())
        self.n_missing += int((predictions["missing_views"] != "").sum())
        self.n_novel += int(predictions.filter(like="novelty_").gt(1.0).any(axis=1).sum())


def _predict(
    trained: TrainedProject, data: Path, target: Path, options: dict[str, Any], *, keep: bool, whole: bool = False
) -> _Predicted:
    """Write the predictions of all rows to a table, some at a time; ``keep`` them in memory as well if asked for."""
    from cmvmed.workbench.changes import EvenRows, describe_change

    found, tested, before = _Predicted(), EvenRows(), 0.0
    with collected_warnings() as warned, progress_bar(BAR_LENGTH) as advance, table_writer(target) as write:
        advance("Predicting", 0)
        for predictions, rows, share in trained.predict_parts(data, whole=whole, **options):
            write(predictions)
            found.add(predictions)
            found.frames += [predictions] if keep else []
            tested.add(rows.views)
            found.notes += [message for message in rows.messages if message not in found.notes]
            advance("Predicting", BAR_LENGTH * (share - before))
            before = share
        change = describe_change(trained.model, tested.views, "These rows")
    found.warnings = warned + ([f"{change} Until then, do not rely on the predictions."] if change else [])
    return found


def _as_json(found: _Predicted, output: Path | None) -> dict[str, Any]:
    content: dict[str, Any] = {"rows": found.n_rows, "output": None if output is None else str(output)}
    content |= {"messages": [*found.notes, *found.warnings]}
    if output is None:
        parts = [json.loads(part.reset_index().to_json(orient="records", double_precision=15)) for part in found.frames]
        content["predictions"] = [row for part in parts for row in part]
    return content


def _summary(found: _Predicted) -> str:
    """How many rows have which class, and how many lack a view or are unlike the training rows."""
    counts = ", ".join(f"{name} {count}" for name, count in found.classes.most_common())
    parts = [plural(found.n_rows, "row"), counts]
    parts += [f"{found.n_missing} {'lacks' if found.n_missing == 1 else 'lack'} a view"] if found.n_missing else []
    parts += [f"{found.n_novel} unlike the training rows in a view"] if found.n_novel else []
    return "; ".join(parts)
