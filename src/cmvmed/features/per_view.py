"""One transformer per view: from raw sensor data to one X with named views."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from cmvmed._optional import import_optional

Transformer: TypeAlias = Any  # of scikit-learn, with any kind of input
RawData: TypeAlias = Any  # an array, sparse matrix, mapping, or data frame of pandas or polars
ViewKey: TypeAlias = Hashable | list[str] | list[int] | slice


def views_transformer(
    views: Mapping[str, tuple[Transformer, ViewKey]] | None = None,
    /,
    *,
    output: Literal["pandas", "polars", "default"] = "pandas",
    n_jobs: int | None = None,
    **named_views: tuple[Transformer, ViewKey],
) -> ViewsTransformer:
    """Apply one transformer per view and concatenate the results to one X.

    Parameters
    ----------
    views : mapping of view name -> (transformer, key), optional
        For names that are not Python identifiers; otherwise pass the views as keywords, ``audio=(MFCC(8000), "wav")``.
        The key selects the part of the input for the transformer:

        * DataFrame: a column name (one column) or a list of names (a DataFrame);
        * array (n, n_channels, n_samples) of synchronized sensors: a channel number, or a list or slice of them;
        * array (n, n_columns): a list or slice of columns;
        * mapping: its key;
        * None: the whole input.
    output : {"pandas", "polars", "default"}
        A DataFrame with columns ``<view>__<feature>``, in which an estimator finds its views by prefix; or an array
        (CSR matrix if any view is sparse), whose views are ``view_slices_`` after ``fit``.
    n_jobs : int, optional
        Number of views computed in parallel.

    Returns
    -------
    ViewsTransformer
        A scikit-learn transformer; its ``views`` is the mapping of view name to column prefix.

    Examples
    --------
    Two synchronized microphones:

    >>> import numpy as np
    >>> from cmvmed.features import MFCC, views_transformer
    >>> sound = np.random.default_rng(0).normal(size=(4, 2, 8000))
    >>> to_views = views_transformer(left=(MFCC(8000), 0), right=(MFCC(8000), 1))
    >>> to_views.views
    {'left': 'left__', 'right': 'right__'}
    >>> to_views.fit_transform(sound).shape
    (4, 400)

    In a pipeline: ``make_pipeline(to_views, CMVMED(views=to_views.views))``.
    """
    chosen = {**(views or {}), **named_views}
    if not chosen:
        raise ValueError('No view given. Pass at least one, as in views_transformer(audio=(MFCC(8000), "wav")).')
    if output not in ("pandas", "polars", "default"):
        raise ValueError(f'output must be "pandas", "polars" or "default", got {output!r}.')
    if output != "default":
        import_optional(output, None, f'output="{output}" (the alternative is an array, output="default")')
    for name, view in chosen.items():
        if "__" in name or not name:
            raise ValueError(f"View name {name!r} must not be empty or contain '__', which separates view and feature.")
        if not (isinstance(view, tuple) and len(view) == 2 and hasattr(view[0], "transform")):
            raise TypeError(f"View {name!r} must be a pair (transformer, key), got {view!r}.")
    dense = output != "default"
    union = ViewsTransformer(
        [(name, SingleViewTransformer(transformer, key, dense=dense)) for name, (transformer, key) in chosen.items()],
        n_jobs=n_jobs,
    )
    return union.set_output(transform=output) if dense else union


class ViewsTransformer(FeatureUnion):
    """Concatenated transformers of several views; created by :func:`views_transformer`.

    Attributes
    ----------
    views : dict of view name -> column prefix
        For ``views=`` of an estimator after DataFrame output; known before ``fit``.
    view_slices_ : dict of view name -> slice
        For ``views=`` of an estimator after array or CSR output.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cmvmed.features import ViewsTransformer, views_transformer
    >>> to_views = views_transformer(left=(StandardScaler(), ["a"]), right=(StandardScaler(), ["b", "c"]))
    >>> isinstance(to_views, ViewsTransformer), to_views.views
    (True, {'left': 'left__', 'right': 'right__'})
    """

    @property
    def views(self) -> dict[str, str]:
        """The prefix of each view's columns in DataFrame output."""
        return {name: f"{name}__" for name, _ in self.transformer_list}

    @property
    def view_slices_(self) -> dict[str, slice]:
        """The columns of each view in array output."""
        check_is_fitted(self)
        widths = [view.n_features_out_ for _, view in self.transformer_list]
        stops = np.cumsum(widths).tolist()
        names = [name for name, _ in self.transformer_list]
        return {n: slice(stop - width, stop) for n, width, stop in zip(names, widths, stops, strict=True)}


class SingleViewTransformer(TransformerMixin, BaseEstimator):
    """Apply a transformer to its part of the input.

    Parameters
    ----------
    transformer : transformer
        Cloned and fitted on the selected part.
    key : column name, channel number, list, slice, mapping key or None
        See :func:`views_transformer`.
    dense : bool
        Convert sparse results to arrays, which DataFrame output needs.
    """

    def __init__(self, transformer: Transformer, key: ViewKey = None, *, dense: bool = False) -> None:
        self.transformer = transformer
        self.key = key
        self.dense = dense

    def fit(self, X: RawData, y: object = None) -> Self:
        """Fit a clone of the transformer on the selected part of X."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: RawData, y: object = None, **params: object) -> Any:
        """Fit a clone of the transformer on the selected part of X, and return its features."""
        transformer = clone(self.transformer)
        features = transformer.fit_transform(_select(X, self.key), y)
        self.transformer_ = transformer
        self.n_features_out_ = int(features.shape[1])
        return self._as_output(features)

    def transform(self, X: RawData) -> Any:
        """Return the features of the selected part of X."""
        check_is_fitted(self)
        return self._as_output(self.transformer_.transform(_select(X, self.key)))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the feature names of the transformer, or the positions of its features if it has none.

        The last steps of a pipeline that have no names keep those of the step before them, if they keep the number.
        """
        check_is_fitted(self)
        steps = self.transformer_
        n_steps = len(steps) if isinstance(steps, Pipeline) else 1
        for last in range(n_steps, 0, -1):
            names = _feature_names(steps[:last] if isinstance(steps, Pipeline) else steps)
            if names is not None and len(names) == self.n_features_out_:
                return names
        return np.array([str(j) for j in range(self.n_features_out_)], dtype=object)

    def _as_output(self, features: Any) -> Any:
        if self.dense and hasattr(features, "toarray"):  # sparse matrices and arrays
            return features.toarray()
        return features


def _feature_names(transformer: Any) -> NDArray[np.object_] | None:
    """Return the names of the features, None if the transformer or one of its steps has none."""
    try:
        return np.asarray(transformer.get_feature_names_out(), dtype=object)
    except (AttributeError, ValueError):  # a step without names, or that needs those of its input
        return None


def _select(X: RawData, key: ViewKey) -> Any:
    if key is None:
        return X
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        table: Any = X
        known = list(table.columns) if hasattr(X, "columns") else list(table)
        unknown = [k for k in (key if isinstance(key, list) else [key]) if k not in known]
        if unknown:
            raise KeyError(f"The input has no column or key {unknown[0]!r}. It has: {', '.join(map(repr, known))}.")
        return table[key]
    array: Any = X if hasattr(X, "shape") else np.asarray(X)
    width = array.shape[1] if array.ndim > 1 else 0
    try:
        return array[:, key]
    except IndexError as error:
        raise IndexError(
            f"The input has {width} channels or columns (shape {array.shape}), so {key!r} cannot be selected."
        ) from error
