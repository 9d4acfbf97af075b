"""``cmvmed predict``: classes and probabilities of new rows, and reasons if asked for, from a model file alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmvmed.cli.project_options import (
    DIGITS,
    check_table,
    collected_warnings,
    for_people,
    force_option,
    json_option,
    model_option,
    open_model,
    show,
    table_option,
    write_table,
)
from cmvmed.cli.train_command import progress_bar
from cmvmed.pages.formatting import plural

if TYPE_CHECKING:
    import pandas as pd


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

    \b
    Examples:
      cmvmed predict new.csv -o predictions.csv --explain
      cmvmed predict new.parquet -m other.cmvmed -o predictions.parquet --alpha 0.05
      cmvmed predict new.csv | cut -d, -f1,2
      cmvmed predict new.csv --json | jq '.predictions[] | select(.missing_views != "")'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    if output is not None:
        check_table(output, force=force)
    from cmvmed.workbench.changes import describe_change

    trained = open_model(model)
    with collected_warnings() as warned:
        rows = trained.project.read_new(data)
        with progress_bar(len(rows.ids)) as advance:
            predictions = trained.predict(
                rows, alpha=alpha, explain=explain, on_rows=lambda done: advance("Predicting", done)
            )
        change = describe_change(trained.model, rows.views, "These rows")
    warned += [f"{change} Until then, do not rely on the predictions."] if change else []
    for message in [] if as_json else rows.messages:
        show("note", message)
    for message in [] if as_json else warned:
        show("warning", message)
    if output is not None:
        write_table(predictions, output)
    if as_json:
        click.echo(json.dumps(_as_json(predictions, output, [*rows.messages, *warned]), indent=2))
    elif output is None:
        click.echo(for_people(predictions).to_csv(float_format=DIGITS), nl=False)
    else:
        click.echo(f"{output}: {_summary(predictions)}")


def _as_json(predictions: pd.DataFrame, output: Path | None, messages: Sequence[str]) -> dict[str, Any]:
    content = {"rows": len(predictions), "output": None if output is None else str(output), "messages": list(messages)}
    if output is None:
        content["predictions"] = json.loads(predictions.reset_index().to_json(orient="records", double_precision=15))
    return content


def _summary(predictions: pd.DataFrame) -> str:
    """How many rows have which class, and how many lack a view or are unlike the training rows."""
    counts = predictions["class"].value_counts()
    parts = [plural(len(predictions), "row"), ", ".join(f"{name} {count}" for name, count in counts.items())]
    n_missing = int((predictions["missing_views"] != "").sum())
    novel = predictions.filter(like="novelty_").gt(1.0).any(axis=1).sum()
    parts += [f"{n_missing} {'lacks' if n_missing == 1 else 'lack'} a view"] if n_missing else []
    parts += [f"{novel} unlike the training rows in a view"] if novel else []
    return "; ".join(parts)
