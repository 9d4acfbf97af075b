"""``cmvmed train``: a model file and a report from a project's data, with a progress bar on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmvmed.cli.project_options import (
    DEFAULT_MODEL,
    check_output,
    collected_warnings,
    command_line,
    force_option,
    json_option,
    labels_option,
    output_option,
    project_changes,
    project_option,
    set_option,
    show,
    show_findings,
)

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.callback import CallbackContext

    from cmvmed.workbench import Finding, Project, ProjectTable, TrainedProject

DEFAULT_REPORT = "report.html"
QUICK_ROWS = 400
SHORT_SECONDS = 5.0  # an expected time below this is not worth a number
# Rough shares of the time of a training, for the time left; a stage is a share of its own.
STEPS = {"Reading": 5, "Checking": 5, "Encoding": 5, "Setting up": 20, "Fitting": 35, "Holding out labels": 30}

Advance = Callable[[str, float], None]  # label of the step that begins, units that are done


@click.command()
@project_option
@output_option(DEFAULT_MODEL, "Model file to write.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default=DEFAULT_REPORT,
    show_default=True,
    help="Report to write.",
)
@click.option("--no-report", is_flag=True, help="Write the model file only.")
@click.option(
    "--quick", is_flag=True, help="A first look: at most about 400 rows, and no learning curve in the report."
)
@labels_option
@set_option
@force_option
@click.option("--dry-run", is_flag=True, help="Check data and files; fit and write nothing.")
@json_option
@click.option("--print-python", is_flag=True, help="Only print the Python code that does the same.")
def command(
    project: Path,
    output: Path,
    report: Path,
    no_report: bool,
    quick: bool,
    label_files: tuple[Path, ...],
    settings: tuple[str, ...],
    force: bool,
    dry_run: bool,
    as_json: bool,
    print_python: bool,
) -> None:
    """Train a model on the rows of a project, and write it and its report to files.

    `cmvmed check` runs first: errors stop the training, warnings do not. The expected time is printed before the fit.
    `cmvmed predict` needs the model file only.

    \b
    Examples:
      cmvmed train
      cmvmed train --quick
      cmvmed train --set model.temperature=0.3 --set data.labels_drawn=random -o other.cmvmed
      cmvmed train --labels next.csv --force       with rows that were labeled after `cmvmed suggest`
      cmvmed train --print-python > train.py
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    changes = project_changes(project, settings, label_files)
    page = None if no_report else report
    if print_python:
        click.echo(python_lines(project, changes, output, page, force, quick), nl=False)
        return
    from cmvmed.workbench import Project

    opened = Project.load(project, changes=changes)
    if dry_run:
        opened = replace(opened, memory=None)  # which would write features to the disk
    for path in (output, *([page] if page else [])):
        check_output(path, force=force or dry_run)
    with progress_bar(sum(STEPS.values())) as advance:
        advance("Reading", 0)
        rows = opened.rows()
        advance("Checking", STEPS["Reading"])
        findings = opened.check(rows)
        _stop_at_errors(findings, rows.messages, as_json)
        rows = rows.part(QUICK_ROWS) if quick else rows
        advance("Encoding", STEPS["Checking"])
        table = opened.read(rows)
        if dry_run:
            _show_dry_run(findings, table, output, page, as_json)
            return
        _show_time(opened, table, with_curve=page is not None and not quick)
        advance("Setting up", STEPS["Encoding"])
        with collected_warnings() as warned:
            trained = opened.train(table, callbacks=[StageProgress(advance, _n_stages(opened))])
        advance("Writing", STEPS["Holding out labels"])
        trained.save(output, overwrite=force)
        if page is not None:
            from cmvmed.workbench.report import write_report

            options: dict[str, Any] = {"command": command_line(), "rows": rows, "with_learning_curve": not quick}
            write_report(page, trained, table, findings, overwrite=force, **options)
    if as_json:
        click.echo(json.dumps(_as_json(trained, table, findings, warned, output, page), indent=2))
    else:
        _show_result(trained, table, findings, warned, output, page)


def _show_time(project: Project, table: ProjectTable, *, with_curve: bool) -> None:
    """Print the expected time on the error stream."""
    from cmvmed.workbench.report.learning_curve import curve_seconds

    fit = project.expected_seconds(table)
    seconds = fit + curve_seconds(fit, len(table.ids)) * with_curve
    if seconds < SHORT_SECONDS:
        text = "some seconds."
    else:
        rounded = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
        text = f"about {rounded}; --quick learns from {QUICK_ROWS} rows for a first look."
    click.echo(f"Expected time: {text}", err=True)


def python_lines(
    project: Path, changes: dict[str, Any], output: Path, report: Path | None, force: bool, quick: bool = False
) -> str:
    """The lines of Python that train the project."""
    without_curve = ", with_learning_curve=False" if quick else ""
    given = f", changes={changes!r}" if changes else ""
    overwrite = ", overwrite=True" if force else ""
    return "\n".join(
        [
            "from cmvmed.workbench import Project",
            *(["from cmvmed.workbench.report import write_report"] if report else []),
            "",
            f"project = Project.load({str(project)!r}{given})",
            "rows = project.rows()",
            "findings = project.check(rows)",
            "for finding in findings:",
            "    print(finding.level, finding.message)",
            f"table = project.read(rows{f'.part({QUICK_ROWS})' if quick else ''})",
            "trained = project.train(table)",
            f"trained.save({str(output)!r}{overwrite})",
            *([f"write_report({str(report)!r}, trained, table, findings{overwrite}{without_curve})"] if report else []),
            "print(trained.model.accuracy_estimate())",
            "",
        ]
    )


def _n_stages(project: Project) -> int:
    from cmvmed import CMVMED

    return int(project.model_parameters.get("n_stages", CMVMED().n_stages))


def _stop_at_errors(findings: Sequence[Finding], messages: Sequence[str], as_json: bool) -> None:
    n_errors = sum(finding.level == "error" for finding in findings)
    if not n_errors:
        return
    if as_json:
        click.echo(json.dumps({"findings": [asdict(one) for one in findings], "messages": list(messages)}, indent=2))
    else:
        show_findings(findings, messages)
    what = "an error" if n_errors == 1 else f"{n_errors} errors"
    raise click.ClickException(f"The data have {what}, so nothing was trained; correct the data or the project file.")


def _show_dry_run(
    findings: Sequence[Finding], table: ProjectTable, output: Path, report: Path | None, as_json: bool
) -> None:
    files = [str(path) for path in (output, report) if path is not None]
    if as_json:
        content = {"would_write": files, **_rows(table), "findings": [asdict(one) for one in findings]}
        click.echo(json.dumps(content | {"messages": list(table.messages)}, indent=2))
        return
    show_findings(findings, table.messages)
    counts = _rows(table)
    click.echo(f"Would learn from {counts['rows']} rows, {counts['labeled']} of them labeled, and write:")
    for file in files:
        click.echo(f"  {file}")


def _rows(table: ProjectTable) -> dict[str, int]:
    return {"rows": len(table.ids), "labeled": sum(label is not None for label in table.labels)}


def _as_json(
    trained: TrainedProject,
    table: ProjectTable,
    findings: Sequence[Finding],
    warned: Sequence[str],
    output: Path,
    report: Path | None,
) -> dict[str, Any]:
    model, estimate = trained.model, trained.model.accuracy_estimate()
    return {
        "model": str(output),
        "report": None if report is None else str(report),
        **_rows(table),
        "classes": [str(name) for name in model.classes_],
        "views": list(model.view_names_),
        "features": _features(trained),
        "accuracy": {name: None if value != value else value for name, value in asdict(estimate).items()}
        | {"is_known": estimate.is_known},
        "findings": [asdict(finding) for finding in findings],
        "warnings": list(warned),
        "messages": list(table.messages),
    }


def _features(trained: TrainedProject) -> dict[str, list[dict[str, Any]]]:
    """The kinds of features of signals that were compared, by view."""
    from cmvmed.workbench.sensor_encoders import SensorEncoder

    return {
        encoder.name: [
            {
                "columns": list(sensor.sources),
                "kind": sensor.features.kind,
                "held_out_r2": _by_kind(sensor.compared, sensor.held_out_r2),
                "score": _by_kind(sensor.compared, sensor.score),
            }
            for sensor in encoder.columns
            if isinstance(sensor, SensorEncoder)
        ]
        for encoder in trained.project.encoders or ()
        if any(isinstance(sensor, SensorEncoder) for sensor in encoder.columns)
    }


def _by_kind(kinds: Sequence[str], values: Sequence[float]) -> dict[str, float | None]:
    return {kind: None if isnan(value) else value for kind, value in zip(kinds, values, strict=True)}


def _show_result(
    trained: TrainedProject,
    table: ProjectTable,
    findings: Sequence[Finding],
    warned: Sequence[str],
    output: Path,
    report: Path | None,
) -> None:
    show_findings(findings, table.messages)
    for message in warned:
        show("warning", message)
    model, counts = trained.model, _rows(table)
    classes, views = (", ".join(map(str, names)) for names in (model.classes_, model.view_names_))
    click.echo(f"{counts['rows']} rows, {counts['labeled']} of them labeled; classes: {classes}; views: {views}")
    for sentence in str(model.accuracy_estimate()).split(". "):
        click.echo(f"{sentence.rstrip('.')}.")
    click.echo(f"\n{output}: the model\n{'' if report is None else f'{report}: the report, for a browser{chr(10)}'}")
    option = "" if str(output) == DEFAULT_MODEL else f" -m {output}"
    click.echo(f"Next: cmvmed predict NEW_DATA{option} -o predictions.csv")
    click.echo(f"      cmvmed suggest{option} -n 20 -o next.csv    which rows to label next")


@contextmanager
def progress_bar(total: float) -> Iterator[Advance]:
    """Yields a function that takes the next step's name and the units done since the last call."""
    if not sys.stderr.isatty():
        yield lambda label, units: None
        return
    with click.progressbar(length=round(total), file=sys.stderr, item_show_func=lambda item: item) as bar:

        def advance(label: str, units: float) -> None:
            bar.update(round(units), label)

        yield advance


class StageProgress:
    """A callback of scikit-learn that advances a bar when a fit begins and after every stage of its annealing."""

    def __init__(self, advance: Advance, n_stages: int) -> None:
        self._advance, self._left, self._n_stages = advance, n_stages, n_stages

    def setup(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Show that the stages begin."""
        if context.task_name == "stage" and self._left == self._n_stages:
            self._advance("Fitting", STEPS["Setting up"])

    def on_fit_task_end(self, estimator: BaseEstimator, context: CallbackContext, **reported: Any) -> None:
        """Show that a stage ended; a second pass over the stages adds nothing."""
        if context.task_name == "stage" and self._left > 0:
            self._left -= 1
            self._advance("Fitting" if self._left else "Holding out labels", STEPS["Fitting"] / self._n_stages)
