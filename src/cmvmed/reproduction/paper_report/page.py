"""The report as one HTML page, generated from result rows."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from cmvmed.pages.rendering import render
from cmvmed.reproduction.method_names import MAJORITY_CLASS
from cmvmed.reproduction.paper_report.accuracy_table import accuracy_cards
from cmvmed.reproduction.paper_report.annealing_curves import annealing_panels
from cmvmed.reproduction.paper_report.claims import table_claims
from cmvmed.reproduction.paper_report.command_lines import reproduce_command
from cmvmed.reproduction.paper_report.cost import cost_tables
from cmvmed.reproduction.paper_report.curve_claims import curve_claims
from cmvmed.reproduction.paper_report.label_curves import BAND_CONFIDENCE, MIN_BAND_SPLITS, curve_panels
from cmvmed.reproduction.paper_report.overview import facts, failures, headline, lead_table
from cmvmed.reproduction.paper_report.printed_algorithm import printed_lines
from cmvmed.reproduction.paper_report.projection_figure import LEVELS, projection_panels
from cmvmed.reproduction.paper_report.reliability import MIN_BIN_ROWS, calibration_panels
from cmvmed.reproduction.paper_report.significance import comparisons, rank_panels, significance_panels, too_few_splits
from cmvmed.reproduction.paper_results import SOURCE
from cmvmed.reproduction.projection import N_LABELED, N_ROWS, example
from cmvmed.reproduction.result_rows import ResultRow


def report_page(rows: Sequence[ResultRow], results: str = "results.sqlite") -> str:
    """The page as HTML.

    Parameters
    ----------
    rows : sequence of ResultRow
        At least one.
    results : str
        Path of the file of results, for the command lines on the page.
    """
    if not rows:
        raise ValueError("There are no results to report; `cmvmed reproduce table1` creates them.")
    methods = [row for row in rows if row.method != MAJORITY_CLASS]  # shown as a rate, not as a method
    claims = (*table_claims(methods), *curve_claims(methods))
    sections = {
        "facts": facts(rows),
        "headline": headline(methods),
        "leads": lead_table(methods),
        "warning": too_few_splits(comparisons(methods)),
        "claims": [claim for claim in claims if claim.findings],
        "undecided": [claim for claim in claims if not claim.findings],
        "projection": projection_panels(example()),
        "contour_levels": ", ".join(f"{level:g}" for level in LEVELS),
        "projection_rows": N_ROWS,
        "projection_labels": N_LABELED,
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
        "report_command": f"cmvmed reproduce report --results {quote(results)}",
        "source": SOURCE,
        "majority_class": MAJORITY_CLASS,
        "min_bin_rows": MIN_BIN_ROWS,
        "band_confidence": BAND_CONFIDENCE,
        "min_band_splits": MIN_BAND_SPLITS,
    }
    return render("page.html", "cmvmed.reproduction.paper_report", sections)
