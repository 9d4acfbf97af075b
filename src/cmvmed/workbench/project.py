"""A project: its file, its rows for training, new rows in the same form, and the model that is learned from them.

``Project.load("cmvmed.toml").read()`` gives views, labels and groups for ``CMVMED``; ``train`` fits it, and a
``TrainedProject`` predicts new rows, matched by the names of columns and encoded as in training, without the data and
the project file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

import cmvmed  # estimators are imported when they are used
from cmvmed.features.feature_cache import FeatureCache
from cmvmed.pages.formatting import plural
from cmvmed.workbench.checks import check_rows
from cmvmed.workbench.class_shares import prior_of_labeled
from cmvmed.workbench.column_encoders import NumberEncoder
from cmvmed.workbench.label_store import labels_path
from cmvmed.workbench.project_file import DEFAULT_NAME, ProjectSettings, parse_project, read_project_file
from cmvmed.workbench.tables.columns import BoolArray, FloatArray, Frame, RawTable, holds_plain_numbers, pandas
from cmvmed.workbench.tables.delimited import NotInParts
from cmvmed.workbench.tables.join import NewPaths, new_paths, open_parts, open_sources, qualified
from cmvmed.workbench.tables.recording_rows import WINDOW_COLUMNS
from cmvmed.workbench.tables.row_labels import (
    RANDOM,
    RANDOM_COLUMN,
    LabelValues,
    first_column,
    likely_markers,
    read_label_values,
)
from cmvmed.workbench.tables.rows import ProjectRows, ProjectTable, part_of_rows, read_training_rows, row_ids
from cmvmed.workbench.toml_text import project_text
from cmvmed.workbench.user_errors import Findings, ProjectError, abbreviate
from cmvmed.workbench.view_encoders import (
    ViewEncoder,
    absent_rows,
    compare_columns,
    encoder_from_state,
    encoder_state,
    fit_views,
    use_memory,
)

SEPARATOR = " | "  # between the names of classes or views in a cell
PREDICTED_AT_ONCE = 20_000  # rows, after which progress is shown
TIMED_ROWS = 250  # of the fit that the time of another is estimated from
MANY_ROWS = 10_000  # from which on the time is worth an estimate
TIME_EXPONENT = 0.85  # seconds of a fit grow as this power of the rows: 0.75 to 0.9 from 250 to 30,000 rows


@dataclass
class Project:
    r"""A project file and the encoders of its views.

    Parameters
    ----------
    settings : ProjectSettings
        What the project file says.
    folder : Path
        Paths of the settings are relative to it.
    encoders : list of ViewEncoder or None
        Fitted by :meth:`read`.
    page_labels : Path or None
        File of the labels of the labeling page, which precede those of the data. It need not exist.
    memory : FeatureCache
        Where features of signals are kept, so that no command computes those of the same signals twice:
        :meth:`load` keeps them in the folder ``cmvmed.cache`` beside the project file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from cmvmed.workbench import Project, TrainedProject, init
    >>> lines = [f"{i},{i % 9},{i % 7},{'ab'[i % 9 > 4] if i < 20 else ''}" for i in range(60)]
    >>> _ = Path("rows.csv").write_text("\n".join(["id,acc_x,gyr_x,label", *lines]), encoding="utf-8")
    >>> _ = Path("cmvmed.toml").write_text(init("rows.csv").text, encoding="utf-8")
    >>> project = Project.load("cmvmed.toml")
    >>> table = project.read()
    >>> sorted(table.views), int((table.labels != None).sum())  # noqa: E711
    (['acc', 'gyr'], 20)
    >>> trained = project.train(table)
    >>> trained.save("model.cmvmed", overwrite=True)
    >>> predicted = TrainedProject.load("model.cmvmed").predict("rows.csv")
    >>> predicted.shape[0], predicted.columns[:3].tolist()
    (60, ['class', 'probability_a', 'probability_b'])
    """

    settings: ProjectSettings
    folder: Path
    encoders: list[ViewEncoder] | None = field(default=None)
    page_labels: Path | None = None
    memory: FeatureCache | None = field(default_factory=FeatureCache, compare=False)

    def __post_init__(self) -> None:
        use_memory(self.encoders or (), self.memory)

    @classmethod
    def load(cls, path: str | PathLike[str] = DEFAULT_NAME, *, changes: Mapping[str, Any] | None = None) -> Self:
        """Read a project file; nothing of the data is read yet.

        Parameters
        ----------
        path : path
            The project file, or the folder of a ``cmvmed.toml``.
        changes : dict from key to value, default=None
            Settings that differ from the file, such as ``{"model.temperature": 0.3}``.
        """
        file = Path(path)
        settings = read_project_file(file, changes)
        cache = (file / DEFAULT_NAME if file.is_dir() else file).with_suffix(".cache")
        folder = file if file.is_dir() else file.parent
        return cls(settings, folder, page_labels=labels_path(file), memory=FeatureCache(cache))

    @property
    def id_name(self) -> str:
        """Name of the identifiers of rows."""
        return self.settings.data.id or "id"

    @property
    def model_parameters(self) -> dict[str, Any]:
        """Parameters of ``CMVMED`` that the project file sets."""
        return {"labels_drawn": self.settings.data.labels_drawn, **self.settings.model}

    def rows(self) -> ProjectRows:
        """The training rows with their labels, before they are encoded."""
        return read_training_rows(self.settings, self.folder, self.page_labels)

    def read(self, rows: ProjectRows | None = None) -> ProjectTable:
        """The training rows, encoded; fits the encoders.

        Parameters
        ----------
        rows : ProjectRows, default=None
            What :meth:`rows` returned, if the files were read before.
        """
        rows = self.rows() if rows is None else rows
        self._check_markers(rows.labels)
        self.encoders, said = fit_views(self.settings, rows, self.memory)
        return self.encode(rows, said)

    def encode(self, rows: ProjectRows, messages: Sequence[str] = ()) -> ProjectTable:
        """Training rows as fitted encoders see them."""
        views = {encoder.name: encoder.encode(rows.table) for encoder in self._fitted_encoders()}
        said = (*rows.messages, *messages)
        return ProjectTable(rows.ids, views, rows.labels.values, rows.groups, said, rows.labels_drawn, rows.random_rows)

    def read_new(self, path: NewPaths) -> ProjectTable:
        """Rows to predict, matched by the names of columns and encoded as in training.

        Parameters
        ----------
        path : path, or a dict from view name to path
            A file or folder of the same kind as the training data. If views have paths of their own: a folder with
            files of the same names, or a dict. A view without columns or files is absent in all rows.
        """
        if self.encoders is None:
            self.read()
        table = open_sources(self.settings, new_paths(self.settings, path), is_training=False)
        return self._encode_new(table, self._said_of_new(table))

    def read_new_parts(self, path: NewPaths) -> Iterator[tuple[ProjectTable, float]]:
        """The same some rows at a time, with the share of the file that is read.

        ``NotInParts`` is raised, also in the middle, if rows have to be read as a whole to mean the same: columns of numbers
        alone in one table do not, unless some cells of a column have a comma or cannot be read, or a column has no cell in
        some parts only, of which a message of each part would tell.
        """
        encoders = self._fitted_encoders()
        columns = [column for encoder in encoders for column in encoder.columns]
        if not all(isinstance(column, NumberEncoder) and not column.is_boolean for column in columns):
            raise NotInParts
        said_first: list[str] | None = None
        for table, share in open_parts(self.settings, new_paths(self.settings, path)):
            for column in columns:
                if not holds_plain_numbers(table, column.sources[0]):
                    raise NotInParts
            said = self._said_of_new(table)
            if said_first is not None and said != said_first:
                raise NotInParts
            said_first = said
            yield self._encode_new(table, said), share

    def _said_of_new(self, table: RawTable) -> list[str]:
        return compare_columns(self._fitted_encoders(), table, self._reserved_names())

    def _encode_new(self, table: RawTable, said: Sequence[str]) -> ProjectTable:
        """New rows as fitted encoders see them, with what is said of them."""
        settings = self.settings
        views = {encoder.name: encoder.encode(table) for encoder in self._fitted_encoders()}
        ids = row_ids(table)
        column = settings.data.labels
        cells = first_column(table, settings, column) if column else None
        labels = np.full(table.n_rows, None, dtype=object)
        if cells is not None:
            labels = read_label_values(cells, replace(settings.data, classes=()), settings.renamed).values
        return ProjectTable(ids, views, labels, None, (*table.messages, *said))

    def check(self, rows: ProjectRows | None = None) -> Findings:
        """What looks wrong in the data; see :func:`cmvmed.workbench.check_rows`. Nothing is fitted."""
        return check_rows(self.rows() if rows is None else rows, self.settings.data)

    def train(
        self, table: ProjectTable | None = None, *, callbacks: Sequence[Any] = (), **parameters: Any
    ) -> "TrainedProject":
        """Fit ``CMVMED`` to the training rows.

        Parameters
        ----------
        table : ProjectTable, default=None
            What :meth:`read` returned, if the rows were read before.
        callbacks : sequence of callbacks of scikit-learn
            Told of the progress of the fit.
        **parameters : parameters of ``CMVMED``
            They precede those of the project file.

        Returns
        -------
        trained : TrainedProject
        """
        table = self.read() if table is None else table
        own = dict(self.settings.model)
        if "class_prior" in own:
            own["class_prior"] = prior_of_labeled(own["class_prior"], table.labels)
        model = cmvmed.CMVMED(**{"labels_drawn": table.labels_drawn, **own, **parameters})
        random_rows = table.random_rows if model.labels_drawn == "chosen" else None
        model.set_callbacks(*callbacks).fit(table.views, table.labels, groups=table.groups, random_rows=random_rows)
        return TrainedProject(replace(self), model.set_callbacks())

    def expected_seconds(self, table: ProjectTable) -> float:
        """About how long :meth:`train` takes, estimated from a fit to some of the rows; 0 if there are few."""
        if len(table.ids) < MANY_ROWS:
            return 0.0
        rows = part_of_rows(table.labels, TIMED_ROWS)
        part, _ = table.take(rows), cmvmed.CMVMED  # which imports it, so that this is not timed
        start = perf_counter()
        with catch_warnings():
            simplefilter("ignore")
            self.train(part)
        return float((perf_counter() - start) * (len(table.ids) / len(rows)) ** TIME_EXPONENT)

    def encoder_states(self) -> list[dict[str, Any]]:
        """The fitted encoders as texts, numbers and lists, and the features of signals, for a model file."""
        return [encoder_state(encoder) for encoder in self._fitted_encoders()]

    def set_encoder_states(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Use encoders that :meth:`encoder_states` described."""
        self.encoders = [encoder_from_state(state) for state in states]
        use_memory(self.encoders, self.memory)

    def _fitted_encoders(self) -> list[ViewEncoder]:
        if self.encoders is None:
            raise ProjectError("The encoders are fitted by Project.read; call it first.")
        return self.encoders

    def _check_markers(self, labels: LabelValues) -> None:
        sure, _ = likely_markers(labels.counts, self.settings.data)
        if sure:
            raise ProjectError(
                f"The label {sure[0]!r} ({plural(labels.counts[sure[0]], 'row')}) looks like a marker for rows that are not "
                "labeled. Add it to unlabeled in [data]; if it is a class, list all classes in classes."
            )

    def _reserved_names(self) -> set[str]:
        data = self.settings.data
        cut = () if self.settings.windows is None else WINDOW_COLUMNS
        names = {name for name in (data.id, data.labels, data.groups, *data.ignore, *cut) if name is not None}
        return names | {qualified(view.name, name) for view in self.settings.views for name in names}


@dataclass(frozen=True)
class TrainedProject:
    r"""A project with fitted encoders and the model of its rows; one file holds both.

    Attributes
    ----------
    project : Project
        Settings and encoders. After loading, the folder of the data is unknown, and not needed to predict.
    model : CMVMED

    Examples
    --------
    >>> from pathlib import Path
    >>> from cmvmed.workbench import Project, TrainedProject, init
    >>> lines = [f"{i},{i % 9},{i % 7},{'ab'[i % 9 > 4] if i < 20 else ''}" for i in range(60)]
    >>> _ = Path("rows.csv").write_text("\n".join(["id,acc_x,gyr_x,label", *lines]), encoding="utf-8")
    >>> _ = Path("cmvmed.toml").write_text(init("rows.csv").text, encoding="utf-8")
    >>> Project.load("cmvmed.toml").train().save("model.cmvmed", overwrite=True)
    >>> trained = TrainedProject.load("model.cmvmed")
    >>> trained.model.classes_.tolist()
    ['a', 'b']
    """

    project: Project
    model: "cmvmed.CMVMED"

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file that :meth:`save` wrote; no code of the file is run."""
        found = cmvmed.load(path)
        if not isinstance(found, cls):
            raise ProjectError(
                f"{path} holds a model without a project, so how to read files for it is not known; use cmvmed.load(path) and "
                "give its predict an array or a data frame."
            )
        return found

    def save(self, path: str | PathLike[str], *, overwrite: bool = False, compact: bool | int = False) -> None:
        """Write model, settings and encoders to one file, which :meth:`load` and :func:`cmvmed.load` read."""
        cmvmed.save(self, path, overwrite=overwrite, compact=compact)

    def predict(
        self,
        rows: NewPaths | ProjectTable,
        *,
        alpha: float = 0.1,
        explain: bool = False,
    ) -> Frame:
        """Classes and probabilities of rows, and why if asked for.

        Parameters
        ----------
        rows : path, dict from view name to path, or ProjectTable
            A file or folder of the kind of the training data, as in :meth:`Project.read_new`, or what that returned.
        alpha : float, default=0.1
            Share of rows whose prediction set may lack the true class.
        explain : bool, default=False
            Whether to say what each view adds to the score, which takes several times as long as the prediction.

        Returns
        -------
        predictions : pandas.DataFrame
            With the identifiers of the rows as index and the columns ``class``; ``probability_*`` of each class;
            ``prediction_set``, names of classes; with ``explain``, ``share_*``, what each view and the class prior add to
            the score of the predicted class; ``missing_views``; ``novelty_*`` of each view, above 1 if a row is unlike
            the training rows.
        """
        if not isinstance(rows, (str, PathLike, Mapping, ProjectTable)):
            raise TypeError(
                f"rows must be the path of a file or folder, but is of type {type(rows).__name__}. The attribute model is the "
                "CMVMED, whose predict takes arrays and data frames of encoded features."
            )
        table = rows if isinstance(rows, ProjectTable) else self.project.read_new(rows)
        parts = [predictions for predictions, _ in self._predictions(table, alpha, explain=explain)]
        return parts[0] if len(parts) == 1 else pandas().concat(parts)

    def predict_parts(
        self, path: NewPaths, *, alpha: float = 0.1, explain: bool = False, whole: bool = False
    ) -> Iterator[tuple[Frame, ProjectTable, float]]:
        """The predictions of :meth:`predict` some rows at a time, with the rows, and the share of the file that is done.

        ``NotInParts`` is raised, also in the middle, if the rows must be read as a whole, as they are with ``whole``.
        """
        tables = [(self.project.read_new(path), 1.0)] if whole else self.project.read_new_parts(path)
        for table, share in tables:
            done = 0
            for predictions, part in self._predictions(table, alpha, explain=explain):
                done += len(part.ids)
                yield predictions, part, share * done / len(table.ids) if whole else share

    def _predictions(self, table: ProjectTable, alpha: float, *, explain: bool) -> Iterator[tuple[Frame, ProjectTable]]:
        for first in range(0, max(len(table.ids), 1), PREDICTED_AT_ONCE):
            some = slice(first, first + PREDICTED_AT_ONCE)
            part = replace(table, ids=table.ids[some], views={name: view[some] for name, view in table.views.items()})
            options: dict[str, Any] = {"id_name": self.project.id_name, "alpha": alpha, "explain": explain}
            yield _prediction_frame(self.model, part, **options), part

    def read_training(self, project: Project, rows: ProjectRows | None = None) -> ProjectTable:
        """The rows of a project, encoded as when the model was trained.

        Parameters
        ----------
        project : Project
            The project as it is now: it may have more labels than when the model was trained.
        rows : ProjectRows, default=None
            What ``project.rows()`` returned, if the files were read before.
        """
        rows = project.rows() if rows is None else rows
        if list(rows.roles.views) != list(self.model.view_names_):
            raise ProjectError(
                f"The project has the views {abbreviate(rows.roles.views)}, but the model was trained with "
                f"{abbreviate(self.model.view_names_)}; train it again."
            )
        return replace(project, encoders=self.project.encoders).encode(rows)

    def suggest(self, table: ProjectTable, n: int = 10, *, random_share: float = 0.2) -> Frame:
        """Which rows to label next, and why.

        Parameters
        ----------
        table : ProjectTable
            Rows of which those without a label are considered: see :meth:`read_training` and :meth:`Project.read_new`.
        n : int, default=10
        random_share : float, default=0.2
            Part of the labels that are of random rows.

        Returns
        -------
        suggestions : pandas.DataFrame
            With the identifiers of the rows as index, the most useful first, and the columns ``label``, which is empty
            and to be filled in, ``reason``, ``score`` and ``random``, which is "yes" for random rows. As a file, it can be one
            of ``label_files``.
        """
        unlabeled = np.flatnonzero([label is None for label in table.labels])
        if len(unlabeled) == 0:
            raise ProjectError("All rows are labeled already; there is nothing to suggest.")
        found = self.model.suggest(
            min(n, len(unlabeled)),
            {name: view[unlabeled] for name, view in table.views.items()},
            random_share=random_share,
        )
        ids = pandas().Index(table.ids[unlabeled[found.rows]], name=self.project.id_name)
        column = self.project.settings.data.label_column or "label"
        marks = np.where(found.random, RANDOM, "")
        return pandas().DataFrame(
            {column: "", "reason": list(found.reasons), "score": found.scores, RANDOM_COLUMN: marks}, index=ids
        )

    def _to_model_file(self) -> dict[str, Any]:
        """What a model file holds: the settings as the text of a project file, so that they are checked when read."""
        settings = project_text(self.project.settings)
        return {"settings": settings, "encoders": self.project.encoder_states(), "model": self.model}

    @classmethod
    def _from_model_file(cls, settings: str, encoders: Sequence[Mapping[str, Any]], model: "cmvmed.CMVMED") -> Self:
        """The inverse of :meth:`_to_model_file`; parts that do not fit together are an error."""
        project = Project(parse_project(settings, "its project"), Path())
        project.set_encoder_states(encoders)
        names = [encoder.name for encoder in project._fitted_encoders()]
        n_features = sum(encoder.n_features for encoder in project._fitted_encoders())
        if not isinstance(model, cmvmed.CMVMED) or (names, n_features) != (
            list(model.view_names_),
            model.n_features_in_,
        ):
            raise ProjectError("its encoders give other features than its model takes")
        return cls(project, model)


def _prediction_frame(
    model: "cmvmed.CMVMED", rows: ProjectTable, *, id_name: str, alpha: float, explain: bool
) -> Frame:
    """One line per row, with the identifiers as index.

    ``share_*`` are the parts of :meth:`CMVMED.explain` in the score of the predicted class: positive ones speak for it.
    """
    X, sets = rows.views, None
    if model.held_out_rows_.size:  # without held-out labels there are no sets
        sets, probabilities = model.predict_set(X, alpha=alpha, return_proba=True)
    else:
        probabilities = model.predict_proba(X)
    codes = probabilities.argmax(axis=1)  # as in ``predict``, whose scores have the same order
    columns: dict[str, Any] = {"class": model.classes_[codes]}
    columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(model.classes_)}
    if sets is not None:
        columns["prediction_set"] = _joined(model.classes_, sets)
    if explain:
        columns |= {f"share_{name}": score_of_class(part, codes) for name, part in model.explain(X).items()}
    absent = np.column_stack([absent_rows(X[name]) for name in model.view_names_])
    columns["missing_views"] = _joined(np.array(model.view_names_, dtype=object), absent)
    columns |= {f"novelty_{name}": values for name, values in model.novelty(X).items()}
    return pandas().DataFrame(columns, index=pandas().Index(rows.ids, name=id_name))


def score_of_class(scores: Any, codes: NDArray[np.intp]) -> FloatArray:
    """The part of the score of each row's class; of two classes, one score speaks for the second."""
    values = np.asarray(scores, dtype=float)
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    return np.asarray(values[np.arange(len(codes)), codes])


def _joined(names: NDArray[Any], chosen: BoolArray) -> list[str]:
    """The chosen names of each row in one text."""
    texts: dict[bytes, str] = {}
    for row in np.unique(chosen, axis=0):
        texts[row.tobytes()] = SEPARATOR.join(str(name) for name in names[row])
    return [texts[row.tobytes()] for row in chosen]
