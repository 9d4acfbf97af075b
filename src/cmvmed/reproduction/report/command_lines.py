"""The commands that repeat what the rows hold."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cmvmed.reproduction.experiment import EXPERIMENTS, Experiment
from cmvmed.reproduction.methods import EACH_VIEW, METHODS
from cmvmed.reproduction.report.grouping import DATASETS, PROTOCOLS, SINGLE_VIEW, method_position, position
from cmvmed.reproduction.result_rows import ResultRow


def reproduce_command(rows: Sequence[ResultRow], spec: str, results: str) -> str:
    """The command that repeats what the rows of an experiment hold; what is as in the experiment's plan goes unsaid.

    Without any row it is the command for a first look.
    """
    members = [row for row in rows if row.spec == spec]
    experiment = EXPERIMENTS.get(spec)
    if not members or experiment is None:
        return shlex.join(["cmvmed", "reproduce", spec])
    words = ["cmvmed", "reproduce", spec, "--full", "--splits", str(1 + max(row.split for row in members))]
    for option, names in _restrictions(members, experiment).items():
        for name in names:
            words += [option, name]
    return shlex.join([*words, "--results", results])


def _restrictions(members: Sequence[ResultRow], experiment: Experiment) -> dict[str, list[str]]:
    """Data sets, protocols and methods of the rows where they are not those of the experiment."""
    datasets = sorted({row.dataset for row in members}, key=lambda name: position(name, DATASETS))
    protocols = sorted({row.protocol for row in members}, key=lambda name: position(name, PROTOCOLS))
    methods = sorted({_as_asked(row.method) for row in members}, key=method_position)
    optional = {name for name, method in METHODS.items() if method.package}
    return {
        "--datasets": datasets if set(datasets) != {cell.dataset for cell in experiment.cells} else [],
        "--protocol": protocols if set(protocols) != set(experiment.protocols) else [],
        "--methods": methods if set(experiment.methods) - optional - set(methods) else [],
    }


def _as_asked(method: str) -> str:
    """A method's name on the command line; single views are asked for together."""
    return EACH_VIEW if method.startswith(SINGLE_VIEW) else method
