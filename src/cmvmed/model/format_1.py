"""Files of version 1 of the format, in which a model was a tree of scorers: read, and converted to a :class:`Model`.

Rows of a view are in the order in which they were written, the labeled ones first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from cmvmed._saved_classes import CLASSIFIERS, EXTRACTORS, STEPS
from cmvmed.core.consensus import class_scores
from cmvmed.data.layout import InputSchema, ViewLayout
from cmvmed.model.archive import ModelFileError
from cmvmed.model.decoding import Decoder
from cmvmed.model.expansions import Expansion
from cmvmed.model.fitted_model import Member, Mixing, Model, RowNumbers
from cmvmed.model.graph_votes import GraphVote
from cmvmed.model.saved_types import extractor_class, field_types, part, project_class, record_types
from cmvmed.model.terms import Centers, Term
from cmvmed.model.uncertainty import HeldOutScores, ViewPosterior
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.types import Array, IntArray
from cmvmed.views.preprocessing import Imputation, Scaling
from cmvmed.views.view_rows import ViewPreprocessor

MIN_REDUCTION = 1e-10  # relative reductions of a variance below this are left out
SAME = {  # types that are still what they were
    "kernel": Kernel,
    "scaling": Scaling,
    "imputation": Imputation,
    "view_layout": ViewLayout,
    "input_schema": InputSchema,
    "held_out_scores": HeldOutScores,
}
TREE = (
    "landmarks",
    "basis",
    "view_settings",
    "view_data",
    "view_preprocessor",
    "kernel_predictor",
    "intercept_predictor",
    "low_rank_predictor",
    "nodes",
    "neighbor_predictor",
    "graph_scorer",
    "kernel_scorer",
    "opinion_scorer",
    "pool_scorer",
    "mixture",
    "fitted_opinions",
    "fitted_model",
)


class Format1Decoder(Decoder):
    """Makes the objects of a document of version 1."""

    def _typed(self, entry: dict[str, Any], fields: dict[str, Any]) -> Any:
        """An object of one of the types of version 1, in which estimators and extractors were types of their own."""
        word = entry.get("type")
        make = _makers().get(word) if isinstance(word, str) else None
        if make is not None:
            return make(**self._plain(fields))
        if isinstance(word, str) and word in CLASSIFIERS | STEPS:
            return self._estimator(word, fields, entry.get("attributes") or {})
        raise ModelFileError(f"it holds a {word!r:.100}, which this release does not know")

    def _estimator(self, name: str, fields: dict[str, Any], attributes: dict[str, Any]) -> Any:
        parameters = _current_parameters(fields) if name in CLASSIFIERS else fields
        return super()._estimator(name, parameters, attributes)

    def _plain(self, values: dict[str, Any]) -> dict[str, Any]:
        return _converted(super()._plain(values))


def _current_parameters(fields: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator without those that version 1 had and this release has not.

    ``class_weight`` and a number of neighbors cannot be said any more; they concern a new fit only.
    """
    old = ("n_components", "rows", "calibrate", "n_neighbors", "class_weight", "warm_start")
    kept = {name: value for name, value in fields.items() if name not in old}
    if fields.get("approximation") == "nystroem" and fields.get("n_components") is not None:
        kept["approximation"] = fields["n_components"]
    if fields.get("rows") == "all":
        kept["rows_tol"] = 0.0
    if fields.get("opinions") == "consensus" and fields.get("calibrate") is False:
        kept["opinions"] = None
    elif fields.get("opinions") == "auto" and "n_neighbors" in fields and fields["n_neighbors"] is None:
        kept["opinions"] = ["linear", "rbf", "views", "consensus"]
    return kept


def _makers() -> dict[str, Callable[..., Any]]:
    """What makes the object of each type from its fields."""
    profile = record_types(field_types(part("reference"))["profiles"])[0]
    found: dict[str, Callable[..., Any]] = dict(SAME)
    found |= {word: _node(word) for word in TREE}
    found |= {word: extractor_class(word) for word in EXTRACTORS}
    found |= {"held_out_accuracy": part("accuracy"), "reference": part("reference"), "view_profile": profile}
    return found | {"trained_project": lambda **fields: project_class()._from_model_file(**fields)}


def _node(word: str) -> Callable[..., SimpleNamespace]:
    return lambda **fields: SimpleNamespace(word=word, **fields)


def _converted(values: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a classifier with a model instead of the tree; other values as they are."""
    tree = values.get("_model")
    if not (isinstance(tree, SimpleNamespace) and tree.word == "fitted_model"):
        return values
    own = ("_labeled_rows", "_unlabeled_rows", "_held_out_scores")
    labeled, unlabeled, held_out = (values.get(name) for name in own)
    model = replace(convert(tree, labeled, unlabeled), held_out=held_out)
    return {name: value for name, value in values.items() if name not in own} | {"_model": model}


def convert(tree: Any, labeled: IntArray | None, unlabeled: IntArray | None) -> Model:
    """The model of a tree; ``labeled`` and ``unlabeled`` are the numbers of its training rows, if they are known."""
    rows = _row_numbers(tree, labeled, unlabeled)
    n_labeled = 0 if rows is None else int(rows.labeled.sum())
    terms, posteriors = zip(*(_view(i, own, n_labeled) for i, own in enumerate(tree.predictors)), strict=True)
    every: list[Term] = list(terms)
    if tree.neighbors is not None:
        every.append(_vote(tree.neighbors.nodes, class_scores(tree.neighbors.scores), n_labeled))
    scale = 0.5 / tree.temperature
    offset = class_scores(tree.offset[None])[0] * scale
    consensus = Member("consensus", tuple(every), tree.pool_weights, "mean", scale, offset)
    members, mixing = _members(tree.opinions, consensus, n_labeled)
    return Model(
        schema=tree.schema,
        classes=tree.classes,
        class_prior=tree.class_prior,
        preprocessors=tuple(term.rows.preprocessor for term in terms),
        members=members,
        mixing=mixing,
        posteriors=tuple(posteriors),
        rows=rows,
    )


def _row_numbers(tree: Any, labeled: IntArray | None, unlabeled: IntArray | None) -> RowNumbers | None:
    if labeled is None or unlabeled is None:
        held = [own.data for own in tree.predictors if own.word != "low_rank_predictor"]
        if not held:
            return None
        labeled = np.arange(1 + max(int(data.rows_L.max(initial=-1)) for data in held))
        unlabeled = labeled.size + np.arange(1 + max(int(data.rows_U.max(initial=-1)) for data in held))
    return RowNumbers(np.concatenate([labeled, unlabeled]), np.arange(labeled.size + unlabeled.size) < labeled.size)


def _preprocessor(node: Any) -> ViewPreprocessor:
    return ViewPreprocessor(node.scaling, node.columns, getattr(node, "imputation", None))


def _numbers(data: Any, n_labeled: int) -> IntArray:
    return np.concatenate([data.rows_L, n_labeled + data.rows_U])


def _bias(settings: Any) -> float:
    return float(settings.bias_variance / settings.prior_variance)


def _view(i: int, node: Any, n_labeled: int) -> tuple[Expansion, ViewPosterior]:
    """A view of the consensus."""
    if node.word == "low_rank_predictor":
        return _low_rank_view(i, node)
    data = node.data
    rows = Centers(i, _preprocessor(data), data.train, _numbers(data, n_labeled))
    a = class_scores(data.settings.prior_variance * np.concatenate([node.tau, node.gamma]))
    index, n_L = None, len(node.tau)
    if not node.gamma.any():
        index, a = np.arange(n_L), a[:n_L]
    constant = class_scores(getattr(node, "intercept", np.zeros(node.tau.shape[1]))[None])[0]
    posterior = ViewPosterior(
        rows,
        np.arange(n_L, rows.size),
        data.kernel,
        _bias(data.settings),
        data.settings.prior_variance,
        node.tau.shape[1],
        node.row_weights,
        node.curvature,
    )
    return Expansion(rows, index, data.kernel, a, constant, _bias(data.settings)), posterior


def _low_rank_view(i: int, node: Any) -> tuple[Expansion, ViewPosterior]:
    basis, settings = node.basis, node.preprocessor.settings
    rows, a = Centers(i, _preprocessor(node.preprocessor), basis.landmarks), basis.transform @ node.theta
    index = basis.columns if basis.kernel.kind == "precomputed" else None
    share = 1.0 - node.d
    reduced = share > MIN_REDUCTION
    posterior = ViewPosterior(
        rows,
        index,
        basis.kernel,
        _bias(settings),
        settings.prior_variance,
        node.theta.shape[1],
        np.zeros(0),
        np.zeros((0, 1)),
        basis.transform[:, reduced] * np.sqrt(share[reduced]),
    )
    return Expansion(rows, index, basis.kernel, class_scores(a[:-1]), class_scores(a[-1:])[0]), posterior


def _vote(nodes: Any, scores: Array, n_labeled: int) -> GraphVote:
    views = zip(nodes.indices, nodes.views, strict=True)
    return GraphVote(
        tuple(Centers(i, _preprocessor(view), view.train, _numbers(view, n_labeled)) for i, view in views),
        tuple(view.kernel.gamma for view in nodes.views),
        nodes.place,
        nodes.weights,
        nodes.n_neighbors,
        scores,
    )


def _members(opinions: Any, consensus: Member, n_labeled: int) -> tuple[tuple[Member, ...], Mixing | None]:
    if opinions is None:
        return (consensus,), None
    pool, mixture = opinions.pool, opinions.mixture
    found = []
    for name, scorer, a, b in zip(opinions.names, pool.scorers, pool.scales, pool.offsets, strict=True):
        terms = tuple(_part(own, n_labeled) for own in scorer.parts)
        rule: Any = "root" if scorer.views else "sum"
        found.append(Member(name, terms, np.ones(len(terms)), rule, float(a), a * scorer.intercept + b))
    members, G = (*found, consensus), mixture.weights.size
    pooling, offsets, scales = np.zeros((2, len(members))), np.zeros((2, consensus.offset.size)), np.ones(2)
    pooling[0, :-1], offsets[0], scales[0] = pool.weights, opinions.pool_offset, mixture.scales[0]
    pooling[1, -1] = 1.0
    return members, Mixing(pooling[:G], offsets[:G], mixture.weights, scales[:G], mixture.scale)


def _part(node: Any, n_labeled: int) -> Term:
    if node.word == "graph_scorer":
        return _vote(node.nodes, node.node_scores, n_labeled)
    preprocessor = _preprocessor(node.preprocessor)
    rows = Centers(node.view, preprocessor, node.basis)
    return Expansion(rows, node.index, node.kernel, node.coefficients, node.constant)
