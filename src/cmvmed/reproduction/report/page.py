"""The report as one HTML page, made from result rows alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

from cmvmed.reproduction.paper_results import SOURCE
from cmvmed.reproduction.report.accuracy_table import accuracy_cards
from cmvmed.reproduction.report.annealing_curves import annealing_panels
from cmvmed.reproduction.report.claims import table_claims
from cmvmed.reproduction.report.command_lines import reproduce_command
from cmvmed.reproduction.report.cost import cost_tables
from cmvmed.reproduction.report.curve_claims import curve_claims
from cmvmed.reproduction.report.label_curves import curve_panels
from cmvmed.reproduction.report.overview import facts, failures, headline
from cmvmed.reproduction.report.printed_algorithm import printed_lines
from cmvmed.reproduction.report.reliability import calibration_panels
from cmvmed.reproduction.report.significance import comparisons, rank_panels, significance_panels, too_few_splits
from cmvmed.reproduction.result_rows import ResultRow

MAJORITY = "majority class"  # shown as a rate beside the methods, not as one of them


def report_page(rows: Sequence[ResultRow], results: str = "results.sqlite") -> str:
    """The page as text.

    Parameters
    ----------
    rows : sequence of ResultRow
        At least one.
    results : str
        Name of the file of results, for the commands that the page shows.
    """
    if not rows:
        raise ValueError("There are no results to report; `cmvmed reproduce table1` makes some.")
    methods = [row for row in rows if row.method != MAJORITY]
    claims = (*table_claims(methods), *curve_claims(methods))
    sections = {
        "facts": facts(rows),
        "headline": headline(methods),
        "warning": too_few_splits(comparisons(methods)),
        "claims": [claim for claim in claims if claim.findings],
        "undecided": [claim for claim in claims if not claim.findings],
        "accuracy": accuracy_cards(methods),
        "curves": curve_panels(methods),
        "annealing": annealing_panels(methods),
        "calibration": calibration_panels(methods),
        "significance": significance_panels(methods),
        "ranks": rank_panels(methods),
        "costs": cost_tables(methods),
        "printed": printed_lines(methods),
        "failures": failures(rows),
        "retry_commands": [
            f"{reproduce_command(rows, spec, results)} --retry-failed"
            for spec in sorted({row.spec for row in rows if row.status != "done"})
        ],
        "table_command": reproduce_command(methods, "table1", results),
        "curve_command": reproduce_command(methods, "figure2", results),
        "report_command": f"cmvmed report --results {quote(results)}",
        "source": SOURCE,
    }
    return str(_environment().get_template("page.html").render(sections))


def write_page(text: str, path: str | Path) -> None:
    """Write the page at once: a reader sees the old file or the new one, never a part."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} does not exist; make it or give another file.")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file.")
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("The report needs jinja2: pip install 'cmvmed[report]'.") from error
    folder = files("cmvmed.reproduction.report").joinpath("templates")
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
