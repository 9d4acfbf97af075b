"""What the sections of the report are made of: the model, its training rows, and labels that were held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed import CMVMED
from cmvmed.pages.formatting import DASH, LEVEL, format_percentage, share_interval, short
from cmvmed.workbench.project import Project
from cmvmed.workbench.tables.columns import BoolArray, FloatArray
from cmvmed.workbench.tables.recording_rows import RECORDING_COLUMN
from cmvmed.workbench.tables.rows import ProjectRows, ProjectTable
from cmvmed.workbench.user_errors import Finding
from cmvmed.workbench.view_encoders import absent_rows, is_sparse

AccuracyEstimate: TypeAlias = Any  # what CMVMED.accuracy_estimate returns


@dataclass(frozen=True)
class HeldOutLabels:
    """Labeled rows as seen by fits that did not use their labels."""

    rows: NDArray[np.intp]  # (m,), numbers of training rows
    codes: NDArray[np.intp]  # (m,), their labels
    probabilities: FloatArray  # (m, K)

    @property
    def predicted(self) -> NDArray[np.intp]:
        """Most probable class of each, (m,)."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def is_right(self) -> BoolArray:
        """Which labels are predicted correctly, (m,)."""
        return np.asarray(self.predicted == self.codes)


@dataclass(frozen=True)
class ModelFacts:
    """A fitted model and its training rows."""

    project: Project
    model: CMVMED
    table: ProjectTable
    findings: Sequence[Finding]
    distributions: FloatArray  # (n, K), certain for labeled rows
    held_out: HeldOutLabels | None
    raw: ProjectRows | None  # as in the files; None if they are gone or have changed

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.table.ids)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Class of each labeled row, -1 for the others, (n,)."""
        code_of = {name: code for code, name in enumerate(self.model.classes_.tolist())}
        return np.array([-1 if label is None else code_of[label] for label in self.table.labels], dtype=np.intp)

    @cached_property
    def label_counts(self) -> NDArray[np.intp]:
        """Labels of each class, (K,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.model.classes_))

    @property
    def n_labeled(self) -> int:
        """Number of labels."""
        return int(self.label_counts.sum())

    @cached_property
    def class_names(self) -> list[str]:
        """Names of the classes, for display."""
        return [short(name) for name in self.model.classes_.tolist()]

    @cached_property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy estimate; None if no label was held out."""
        try:
            found = self.model.accuracy_estimate(LEVEL)
        except ValueError:  # members=None, or the fit was stopped
            return None
        return found if found.n_held_out > 0.0 else None

    @property
    def largest_class(self) -> tuple[str, float]:
        """Name and share of the largest class, as estimated among the unlabeled rows."""
        shares = self.model.class_prior_
        return self.class_names[int(shares.argmax())], float(shares.max())

    @cached_property
    def unlabeled(self) -> NDArray[np.intp]:
        """Numbers of the unlabeled rows."""
        return np.flatnonzero(self.codes < 0)

    @cached_property
    def rows_with_views(self) -> NDArray[np.intp]:
        """Numbers of the rows that have at least one view."""
        absent = np.all([absent_rows(matrix) for matrix in self.table.views.values()], axis=0)
        return np.flatnonzero(~absent)

    @property
    def group_name(self) -> str:
        """What a group is: the column of groups, or a recording that windows are cut from."""
        return self.project.settings.data.groups or RECORDING_COLUMN

    def member_accuracy(self, name: str) -> float:
        """Share of held-out labels that a member predicts correctly; NaN if it does not take part."""
        members = self.model.members_
        return float(members["accuracy"][members["name"].index(name)]) if name in members["name"] else np.nan


def with_interval(n_right: int, n: int) -> str:
    """A share with its interval, such as "80 % (49 to 95)"; a dash if nothing was seen."""
    if n == 0:
        return DASH
    low, high = (f"{100.0 * bound:.0f}" for bound in share_interval(n_right, n))
    return f"{format_percentage(n_right / n, 0)} ({low} to {high})"


def read_facts(
    project: Project,
    model: CMVMED,
    table: ProjectTable,
    findings: Sequence[Finding],
    rows: ProjectRows | None = None,
) -> ModelFacts:
    """Check that the parts belong together, and gather what several sections need."""
    if list(table.views) != list(model.view_names_):
        raise ValueError(
            f"The model has the views {', '.join(model.view_names_)}, the table {', '.join(table.views)}; give the table "
            "that the model was trained on, as Project.read returns it."
        )
    distributions = getattr(model, "label_distributions_", None)
    if distributions is None:
        distributions = model.predict_proba(table.views)
    if len(distributions) != len(table.ids):
        raise ValueError(
            f"The model was trained on {len(distributions)} rows, the table has {len(table.ids)}; give the table that it was "
            "trained on, or train it again."
        )
    strange = {label for label in table.labels if label is not None} - set(model.classes_.tolist())
    if strange:
        raise ValueError(
            f"The table has the label {min(strange)!r}, which is not a class of the model; train it again."
        )
    facts = ModelFacts(project, model, table, findings, distributions, None, _raw_rows(project, table, rows))
    own, probabilities = model.held_out_rows_, model.held_out_proba_
    if own.size == 0:
        return facts
    held_out = HeldOutLabels(own, facts.codes[own], probabilities)
    if (held_out.codes < 0).any():
        raise ValueError("The table lacks labels that the model was trained on; give the table that it was trained on.")
    return replace(facts, held_out=held_out)


def _raw_rows(project: Project, table: ProjectTable, rows: ProjectRows | None) -> ProjectRows | None:
    """The rows of the project's files, if they can be read and are still those of the table."""
    if rows is None:
        try:
            rows = project.rows()
        except (ValueError, OSError, ImportError):  # files that are gone or have changed
            return None
    return rows if np.array_equal(rows.ids, table.ids) else None


def dense_rows(matrix: Any, rows: Any) -> FloatArray:
    """Some rows of a view as an array."""
    taken = matrix[rows]
    return np.asarray(taken.toarray() if is_sparse(taken) else taken, dtype=np.float64)


def column_statistics(matrix: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column over the rows that have the view, (d,) each."""
    present = np.flatnonzero(~absent_rows(matrix))
    if not len(present):
        return np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    taken = matrix[present]
    if is_sparse(taken):
        mean = np.asarray(taken.mean(axis=0)).ravel()
        return mean, np.sqrt(np.maximum(np.asarray((taken * taken).mean(axis=0)).ravel() - mean**2, 0.0))
    return np.asarray(np.nanmean(taken, axis=0)), np.asarray(np.nanstd(taken, axis=0))
