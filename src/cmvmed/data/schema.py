"""The columns of X and the views that they belong to, and the settings by which X and y are read."""

from collections.abc import Sequence
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from cmvmed.data.layout import ViewLayout, layout_of_widths

UNEQUAL_ROWS = "The views have unequal numbers of rows: {}; align them first."


@dataclass(frozen=True)
class InputSettings:
    """How X and y are read."""

    estimator: BaseEstimator  # for the checks of scikit-learn, which name it in their messages
    views: object
    unlabeled: object
    memory_limit: int  # bytes
    n_threads: int | None  # that work on chunks of rows; None for those of the linear algebra


@dataclass(frozen=True)
class InputSchema:
    """The columns of the training X, and which view each belongs to."""

    layout: ViewLayout
    names: list[str] | None  # of all columns, None unless all have one
    table_columns: list[list[str] | None] | None = None  # if X was one table per view, the column names of its frames

    @property
    def view_names(self) -> tuple[str, ...]:
        """Names of the views."""
        return self.layout.names

    @property
    def columns_by_view(self) -> tuple[list[str] | None, ...]:
        """Per view, the names of its columns if all columns of X have names."""
        names = self.names
        return tuple(None if names is None else [names[c] for c in columns] for columns in self.layout.columns)

    @property
    def known_columns(self) -> list[list[str] | None]:
        """Per view, the names of its columns, None where they have none."""
        return list(self.columns_by_view) if self.table_columns is None else self.table_columns

    @property
    def n_features(self) -> int:
        """Number of columns of all views."""
        return sum(self.layout.widths)


def schema_of_tables(
    names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None], settings: InputSettings
) -> InputSchema:
    """The columns of one table per view, which may have names."""
    if settings.views is not None:
        raise ValueError(
            "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
        )
    of_all = None if None in columns else [name for part in columns for name in part or ()]
    return InputSchema(layout_of_widths(names, widths), of_all, columns)


def order_of_views(names: Sequence[str], schema: InputSchema) -> list[int]:
    """Where each view of the training X is among those of a dict."""
    if set(names) != set(schema.view_names):
        raise ValueError(
            f"X has the views {sorted(names)} but fit saw {sorted(schema.view_names)}; pass the same views."
        )
    return [names.index(view) for view in schema.view_names]


def check_widths(widths: Sequence[int], schema: InputSchema) -> None:
    """Raise if the views of new rows have other numbers of columns than those of the training X."""
    names = schema.view_names
    if len(widths) != len(names):
        raise ValueError(f"X has {len(widths)} views but fit saw {len(names)}: {list(names)}.")
    for name, expected, width in zip(names, schema.layout.widths, widths, strict=True):
        if width != expected:
            raise ValueError(f"View {name!r} has {width} features, but fit saw {expected}; pass the same columns.")
