"""``cmvmed check``: rows, labels, gaps, and what looks wrong in a project's data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cmvmed.workbench import Finding

COLORS = {"error": "red", "warning": "yellow", "note": "blue"}


@click.command()
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    default="cmvmed.toml",
    show_default=True,
    help="Project file, or the folder of a cmvmed.toml.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of sentences.")
def command(project: Path, as_json: bool) -> None:
    """Show rows, labels per class and gaps per view of a project, and what looks wrong. Nothing is fitted.

    The exit code is 1 if there are errors, which make results meaningless, and 0 if there are at most warnings.

    \b
    Examples:
      cmvmed check
      cmvmed check --project swimming.toml
      cmvmed check --json | jq '.findings[] | select(.level == "error") | .message'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from cmvmed.workbench import Finding, Project, ProjectError, check_rows, describe_rows

    if not project.exists():
        raise click.UsageError(
            f"There is no project file {str(project)!r}. `cmvmed init DATA` writes one; --project FILE uses another."
        )
    counts: dict[str, Any] | None = None
    messages: Sequence[str] = ()
    try:
        opened = Project.load(project)
        rows = opened.rows()
    except (ProjectError, OSError) as error:
        findings = [Finding("error", "unreadable", str(error))]
    else:
        findings, counts, messages = check_rows(rows, opened.settings.data), describe_rows(rows), rows.messages
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
    groups = "" if counts["groups"] is None else f", {counts['groups']} groups"
    click.echo(f"{counts['rows']} rows, {counts['labeled']} labeled, {counts['unlabeled']} unlabeled{groups}")
    for label, count in counts["labels_per_class"].items():
        click.echo(f"  class {label}: {count}")
    for name, view in counts["views"].items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in view["kinds"].items())
        gaps = f"absent in {view['rows_absent']} rows, {view['cells_missing']} single gaps"
        click.echo(f"  view {name}: {kinds}; {gaps}")
    click.echo()


def _print_findings(findings: Sequence[Finding], messages: Sequence[str]) -> None:
    for finding in findings:
        click.echo(f"{click.style(finding.level, fg=COLORS[finding.level], bold=True)}: {finding.message}")
    for message in messages:
        click.echo(f"{click.style('note', fg=COLORS['note'], bold=True)}: {message}")
    n_errors, n_warnings = (sum(one.level == level for one in findings) for level in ("error", "warning"))
    total = "Nothing looks wrong." if not n_errors + n_warnings else f"{n_errors} errors, {n_warnings} warnings."
    click.echo(total)
