"""``cmvmed check``: rows, labels, gaps, and what looks wrong in a project's data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmvmed.cli.project_options import (
    json_option,
    labels_option,
    project_changes,
    project_option,
    set_option,
    show_findings,
)
from cmvmed.pages.formatting import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cmvmed.workbench import Finding


@click.command(
    epilog="Exit codes: 0 at most warnings, 1 errors in the data, 2 invalid command line, 130 interrupted, 143 terminated."
)
@project_option
@labels_option
@set_option
@json_option
def command(project: Path, label_files: tuple[Path, ...], settings: tuple[str, ...], as_json: bool) -> None:
    """Show rows, labels per class and gaps per view of a project, and what looks wrong. Nothing is fitted.

    Errors make results meaningless, and stop `cmvmed train`; warnings probably make them worse.

    \b
    Examples:
      cmvmed check
      cmvmed check --project swimming.toml
      cmvmed check --labels next.csv
      cmvmed check --json | jq '.findings[] | select(.level == "error") | .message'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    changes = project_changes(project, settings, label_files)
    from cmvmed.workbench import Finding, Project, ProjectError, describe_rows

    counts: dict[str, Any] | None = None
    messages: Sequence[str] = ()
    try:
        opened = Project.load(project, changes=changes)
        rows = opened.rows()
    except (ProjectError, OSError) as error:
        findings = [Finding("error", "unreadable", str(error))]
    else:
        findings, counts, messages = opened.check(rows), describe_rows(rows), rows.messages
    if as_json:
        content = {"counts": counts, "findings": [asdict(finding) for finding in findings], "messages": list(messages)}
        click.echo(json.dumps(content, indent=2))
    else:
        _print_counts(counts)
        _print_findings(findings, messages)
    click.get_current_context().exit(any(finding.level == "error" for finding in findings))


def _print_counts(counts: dict[str, Any] | None) -> None:
    if counts is None:
        return

    groups = "" if counts["groups"] is None else f", {plural(counts['groups'], 'group')}"
    click.echo(f"{plural(counts['rows'], 'row')}, {counts['labeled']} labeled, {counts['unlabeled']} unlabeled{groups}")
    for label, count in counts["labels_per_class"].items():
        click.echo(f"  class {label}: {count}")
    for name, view in counts["views"].items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in view["kinds"].items())
        gaps = f"absent in {plural(view['rows_absent'], 'row')}, {plural(view['cells_missing'], 'single gap')}"
        click.echo(f"  view {name}: {kinds}; {gaps}")
    click.echo()


def _print_findings(findings: Sequence[Finding], messages: Sequence[str]) -> None:
    show_findings(findings, messages, err=False)
    n_errors, n_warnings = (sum(one.level == level for one in findings) for level in ("error", "warning"))
    total = f"{plural(n_errors, 'error')}, {plural(n_warnings, 'warning')}."
    click.echo(total if n_errors + n_warnings else "Nothing looks wrong.")
