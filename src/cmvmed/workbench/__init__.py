"""The workbench: a user's own files as views, labels and groups, described by one project file ``cmvmed.toml``."""

from cmvmed.workbench.checks import check_rows, describe_rows
from cmvmed.workbench.guessing import Guess, Guesses, init
from cmvmed.workbench.project import Project, TrainedProject
from cmvmed.workbench.project_file import DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.tables.rows import ProjectRows, ProjectTable
from cmvmed.workbench.user_errors import Finding, Findings, ProjectError

__all__ = [
    "DataSettings",
    "Finding",
    "Findings",
    "Guess",
    "Guesses",
    "Project",
    "ProjectError",
    "ProjectRows",
    "ProjectSettings",
    "ProjectTable",
    "TrainedProject",
    "ViewSettings",
    "WindowSettings",
    "check_rows",
    "describe_rows",
    "init",
]
