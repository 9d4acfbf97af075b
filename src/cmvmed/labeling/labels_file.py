"""Where the labels of a project are kept."""

from pathlib import Path

from cmvmed.workbench.project_file import DEFAULT_NAME

__all__ = ["labels_path"]


def labels_path(project_file: Path) -> Path:
    """The file of labels beside a project file: ``cmvmed.labels.sqlite`` for ``cmvmed.toml``."""
    file = project_file / DEFAULT_NAME if project_file.is_dir() else project_file
    return file.with_suffix(".labels.sqlite")
