"""The report of a model as one HTML page."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from cmvmed.pages.formatting import clean, short
from cmvmed.pages.rendering import new_page, render
from cmvmed.workbench.project import TrainedProject
from cmvmed.workbench.report.comparison import compare
from cmvmed.workbench.report.held_out import confusion_table, doubtful_labels, group_lines, held_out_calibration
from cmvmed.workbench.report.learning_curve import COST, learning_curve
from cmvmed.workbench.report.model_facts import read_facts
from cmvmed.workbench.report.row_map import draw_map
from cmvmed.workbench.report.sensors import describe_sensors
from cmvmed.workbench.report.training_summary import (
    DEFAULT_COMMAND,
    class_lines,
    feature_lines,
    fit_facts,
    row_facts,
    settings_lines,
    share_line,
    share_sentences,
    versions,
    view_lines,
)
from cmvmed.workbench.report.uncertain_rows import uncertain_rows
from cmvmed.workbench.report.verdict import next_steps, verdict
from cmvmed.workbench.tables.rows import ProjectRows, ProjectTable
from cmvmed.workbench.user_errors import Finding


def model_page(
    trained: TrainedProject,
    table: ProjectTable,
    findings: Sequence[Finding],
    *,
    command: str | None = None,
    rows: ProjectRows | None = None,
    with_learning_curve: bool = True,
    curve_cost: float = COST,
) -> str:
    """The page as HTML; the parameters are those of :func:`write_report`."""
    facts = read_facts(trained.project, trained.model, table, findings, rows)
    sensors = describe_sensors(facts)
    curve = learning_curve(facts, curve_cost) if with_learning_curve else None
    answer = verdict(facts)
    sections = {
        "title": short(trained.project.settings.data.path or "a file for each view"),
        "verdict": answer,
        "comparison": compare(facts),
        "steps": next_steps(facts, answer, sensors, curve),
        "facts": row_facts(facts),
        "classes": class_lines(facts),
        "shares": share_sentences(facts),
        "share_line": share_line(facts),
        "views": view_lines(facts),
        "features": feature_lines(facts),
        "messages": [clean(message) for message in table.messages],
        "n_labeled": facts.n_labeled,
        "confusion": confusion_table(facts),
        "groups": group_lines(facts),
        "group_name": short(facts.group_name),
        "doubtful": doubtful_labels(facts),
        "calibration": held_out_calibration(facts),
        "sensors": sensors,
        "map": draw_map(facts),
        "uncertain": uncertain_rows(facts),
        "curve": curve,
        "curve_skipped": not with_learning_curve,
        "findings": [(finding.level, clean(finding.message)) for finding in findings],
        "settings": settings_lines(facts),
        "fit": fit_facts(facts),
        "versions": versions(),
        "command": clean(command or DEFAULT_COMMAND),
    }
    return render("model.html", "cmvmed.workbench.report", sections)


def write_report(
    path: str | PathLike[str],
    trained: TrainedProject,
    table: ProjectTable,
    findings: Sequence[Finding],
    *,
    command: str | None = None,
    overwrite: bool = False,
    rows: ProjectRows | None = None,
    with_learning_curve: bool = True,
    curve_cost: float = COST,
) -> None:
    """Write the report of a model: one HTML file without scripts, which needs no network.

    Parameters
    ----------
    path : path
        File to write, completely or not at all.
    trained : TrainedProject
    table : ProjectTable
        The rows that the model was trained on, as :meth:`Project.read` returns them.
    findings : list of Finding
        What looked wrong in the data, as :meth:`Project.check` returns it.
    command : str or None, default=None
        The command that makes the model again, for the page.
    overwrite : bool, default=False
        Whether an existing file is replaced.
    rows : ProjectRows or None, default=None
        What :meth:`Project.rows` returns, for gaps and signals; None reads the files again, if they are there.
    with_learning_curve : bool, default=True
        Whether the model is fitted up to nine times to parts of the labels, on at most 400 rows each.
    curve_cost : float, default=0.2
        How many times the rows of the table these fits have together at most, and so about how many times the time of the
        model they take; one is always made, and ``math.inf`` makes all.
    """
    options: dict[str, Any] = {"with_learning_curve": with_learning_curve, "curve_cost": curve_cost}
    with new_page(Path(path), overwrite=overwrite) as file:
        text = model_page(trained, table, findings, command=command, rows=rows, **options)
        file.write_text(text, encoding="utf-8")
