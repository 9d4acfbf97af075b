"""Command lines that reproduce the result rows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cmvmed.reproduction.experiment import EXPERIMENTS, PROTOCOLS, Experiment
from cmvmed.reproduction.methods import METHODS, each_view_name
from cmvmed.reproduction.paper_report.grouping import DATASET_TITLES, method_position, sort_position
from cmvmed.reproduction.result_rows import ResultRow


def reproduce_command(rows: Sequence[ResultRow], spec: str, results: str) -> str:
    """The command line that reproduces the rows of an experiment.

    Options that equal the definition of the experiment are omitted. If there are no rows, it is the command line of a
    quick run.
    """
    members = [row for row in rows if row.spec == spec]
    experiment = EXPERIMENTS.get(spec)
    if not members or experiment is None:
        return shlex.join(["cmvmed", "reproduce", spec])
    arguments = ["cmvmed", "reproduce", spec, "--full", "--splits", str(1 + max(row.split for row in members))]
    for option, names in _restrictions(members, experiment).items():
        for name in names:
            arguments += [option, name]
    return shlex.join([*arguments, "--results", results])


def _restrictions(members: Sequence[ResultRow], experiment: Experiment) -> dict[str, list[str]]:
    """Data sets, protocols and methods of the rows where they differ from those of the experiment."""
    datasets = sorted({row.dataset for row in members}, key=lambda name: sort_position(name, DATASET_TITLES))
    protocols = sorted({row.protocol for row in members}, key=lambda name: sort_position(name, PROTOCOLS))
    methods = sorted({each_view_name(row.method) for row in members}, key=method_position)
    optional = {name for name, method in METHODS.items() if method.package}
    return {
        "--datasets": datasets if set(datasets) != {cell.dataset for cell in experiment.cells} else [],
        "--protocol": protocols if set(protocols) != set(experiment.protocols) else [],
        "--methods": methods if set(experiment.methods) - optional - set(methods) else [],
    }
