"""A fitted model as an ONNX model: the formulas of :mod:`cmvmed.estimators._prediction` as a graph of operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cmvmed.data.validation import RowCheck
from cmvmed.estimators._prediction import FittedModel
from cmvmed.graphs.nodes import GraphScorer
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.onnx_export.compared_rows import ComparedRows, check_size
from cmvmed.onnx_export.expansions import Expansion, check_kernel, scorer_expansion, view_expansion
from cmvmed.onnx_export.graph_builder import Graph, GraphBuilder, Tensor, sum_of
from cmvmed.onnx_export.nearest_nodes import neighbor_scores, use_nodes
from cmvmed.onnx_export.onnx_file import finished_model, label_values
from cmvmed.onnx_export.opinion_scores import mixture_log_probabilities, pool_log_probabilities, used_parts
from cmvmed.onnx_export.view_inputs import ViewInput, view_input

LABEL, PROBABILITIES, SCORES, BY_VIEW = "label", "probabilities", "scores", "probabilities_{}"  # outputs
DESCRIPTION = (
    "Inputs: one table per view, columns as in the metadata; a row of NaN does not have the view, a single NaN is filled. "
    "Outputs: the class of each row, and the probability of each class in the order of the metadata."
)


@dataclass(frozen=True)
class OutputChoice:
    """What an ONNX model returns beside the labels."""

    probabilities: bool  # else scores
    by_view: bool  # probabilities by each view too
    dtype: str  # of numbers


def onnx_model(model: FittedModel, estimator: str, choice: OutputChoice) -> Any:
    """The ``onnx.ModelProto``; ``estimator`` is the name of the class."""
    names, graph = model.schema.view_names, GraphBuilder()
    _check_names(names, choice)
    expansions = [view_expansion(predictor) for predictor in model.predictors]
    rows = compared_rows(model, expansions)
    check_size(rows)
    views, means, logits, _ = model_formulas(graph, model, expansions, rows, choice.dtype)
    _add_labels(graph, model, logits)
    if choice.probabilities:
        _add_probabilities(graph, PROBABILITIES, logits, model, choice)
    else:
        graph.output(SCORES, _decision_scores(model, logits).cast(choice.dtype), choice.dtype, model.offset.size)
    for name, view, mean in zip(names, views, means, strict=True):
        if choice.by_view:
            own = view.has.where(_logits(model, mean + model.offset), np.log(model.class_prior))
            _add_probabilities(graph, BY_VIEW.format(name), own, model, choice)
    properties = {
        "estimator": estimator,
        "classes": model.classes.tolist(),
        "views": list(names),
        "columns": model.schema.known_columns,
    }
    return finished_model(graph, estimator, DESCRIPTION, properties)


class ModelFormulas(NamedTuple):
    """What the outputs for some rows come from."""

    views: list[ViewInput]
    means: list[Tensor]  # per view (n, F), of rows that have it
    logits: Tensor  # (n, K), log p up to a constant of each row
    coverage: Tensor  # (n, 1), weight of the views that the row has


def model_formulas(
    graph: Graph,
    model: FittedModel,
    expansions: Sequence[Expansion],
    rows: ComparedRows,
    dtype: Any,
    check: RowCheck | None = None,
) -> ModelFormulas:
    """The formulas of a model with these expansions of its views, for inputs of a type of numbers.

    ``check`` says which columns do not matter; those of the model if it is left out.
    """
    views = _inputs(graph, model, dtype, model.row_check if check is None else check)
    means = [expansion.scores(view, rows) for expansion, view in zip(expansions, views, strict=True)]
    return ModelFormulas(views, means, *_decided_logits(model, views, means, rows))


def _add_labels(graph: GraphBuilder, model: FittedModel, logits: Tensor) -> None:
    """The class of the largest logit; the first of equal ones, as in ``predict``."""
    labels = label_values(model.classes)
    graph.output(LABEL, graph.apply("Gather", labels, logits.apply("ArgMax", axis=1, keepdims=0), axis=0), labels.dtype)


def _add_probabilities(
    graph: GraphBuilder, name: str, logits: Tensor, model: FittedModel, choice: OutputChoice
) -> None:
    graph.output(name, logits.apply("Softmax", axis=1).cast(choice.dtype), choice.dtype, model.classes.size)


def compared_rows(model: FittedModel, expansions: Sequence[Expansion]) -> ComparedRows:
    """The training rows that the model needs; an error if a kernel cannot be computed."""
    rows, opinions = ComparedRows(), model.opinions
    parts = [] if opinions is None else list(used_parts(opinions.pool))
    graphs = [] if model.neighbors is None else [model.neighbors.nodes]
    every = list(expansions)
    for part in parts:
        if isinstance(part, KernelScorer):
            every.append(scorer_expansion(part))
        elif isinstance(part, GraphScorer):
            graphs.append(part.nodes)
    for expansion in every:
        check_kernel(expansion.kernel)
        if expansion.compares:
            rows.use(expansion.train, expansion.rows)
    for nodes in graphs:
        use_nodes(nodes, rows)
    return rows


def _inputs(graph: Graph, model: FittedModel, dtype: Any, check: RowCheck) -> list[ViewInput]:
    schema = model.schema
    parts = zip(schema.view_names, schema.layout.widths, check.unused, model.predictors, strict=True)
    return [
        view_input(graph, name, width, dtype, columns, usable=predictor.has_training_rows)
        for name, width, columns, predictor in parts
    ]


def _decided_logits(
    model: FittedModel, views: Sequence[ViewInput], means: Sequence[Tensor], rows: ComparedRows
) -> tuple[Tensor, Tensor]:
    """log p up to a constant of each row, (n, K), that of the class prior for rows without any view; and coverage, (n, 1)."""
    scores, coverage = _consensus(model, views, means, rows)
    opinions = model.opinions
    if opinions is None:
        log_p = _logits(model, scores)
    else:
        logits = [pool_log_probabilities(opinions.pool, views, rows) + opinions.pool_offset]
        if opinions.with_consensus:
            logits.append(_logits(model, scores) / float(opinions.mixture.scales[-1]))
        log_p = mixture_log_probabilities(opinions.mixture, logits)
    return coverage.above(0.0).where(log_p, np.log(model.class_prior)), coverage


def _consensus(
    model: FittedModel, views: Sequence[ViewInput], means: Sequence[Tensor], rows: ComparedRows
) -> tuple[Tensor, Tensor]:
    """Pooled scores with the offset, Σ π_i m_i / Σ π_i + o over the views of a row, (n, F), and Σ π_i, (n, 1)."""
    parts = [(mean, view.mask) for mean, view in zip(means, views, strict=True)]
    if model.neighbors is not None:
        parts.append(neighbor_scores(model.neighbors.nodes, model.neighbors.scores, views, rows))
    weighted = [(mean, has * float(weight)) for (mean, has), weight in zip(parts, model.pool_weights, strict=True)]
    total, coverage = sum_of([mean * weight for mean, weight in weighted]), sum_of([weight for _, weight in weighted])
    return total / coverage.above(0.0).where(coverage, 1.0) + model.offset, coverage


def _logits(model: FittedModel, scores: Tensor) -> Tensor:
    """Logits (n, K) of the consensus, class_scores(m)/2T with class_scores(m) = (-m, m) if F = 1 else m."""
    both = scores.graph.concatenate(-scores, scores) if model.offset.size == 1 else scores
    return both / (2.0 * model.temperature)


def _decision_scores(model: FittedModel, logits: Tensor) -> Tensor:
    """The pooled scores (n, F) whose logits these are, of the consensus alone."""
    if model.offset.size == 1:
        return logits @ (model.temperature * np.array([[-1.0], [1.0]]))
    return logits * (2.0 * model.temperature)


def _check_names(views: Sequence[str], choice: OutputChoice) -> None:
    outputs = [LABEL, PROBABILITIES if choice.probabilities else SCORES]
    outputs += [BY_VIEW.format(name) for name in views] if choice.by_view else []
    taken = [name for name in views if name in outputs or not name or name.startswith("/")]
    if taken:
        raise ValueError(
            f"A view is named {taken[0]!r}. The inputs of an ONNX model have the names of the views, which must not be empty, "
            f"begin with a slash, or be the name of an output ({', '.join(outputs)}); give the view another name."
        )
