"""The pool of the opinions that are learned from the labels, and its mixture with the consensus."""

from collections.abc import Iterator, Sequence

import numpy as np

from cmvmed.graphs.nodes import GraphScorer
from cmvmed.members.accuracy import Mixture
from cmvmed.members.candidates import OpinionScorer, PartScorer
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.members.pool import PoolScorer
from cmvmed.onnx_export.compared_rows import ComparedRows
from cmvmed.onnx_export.expansions import scorer_expansion
from cmvmed.onnx_export.graph_builder import Tensor, sum_of
from cmvmed.onnx_export.nearest_nodes import neighbor_scores
from cmvmed.onnx_export.view_inputs import ViewInput


def used_parts(pool: PoolScorer) -> Iterator[PartScorer]:
    """The parts of the opinions that have weight."""
    for scorer, weight in zip(pool.scorers, pool.weights, strict=True):
        if weight > 0.0:
            yield from scorer.parts


def pool_log_probabilities(pool: PoolScorer, views: Sequence[ViewInput], rows: ComparedRows) -> Tensor:
    """log Π_j p_j^{w_j}, normalized, (n, K), with p_j = softmax(c_j s_j + b_j)."""
    parts = []
    for scorer, scale, offset, weight in zip(pool.scorers, pool.scales, pool.offsets, pool.weights, strict=True):
        if weight > 0.0:
            scores = opinion_scores(scorer, views, rows)
            parts.append((scores * float(scale) + offset).log_softmax() * float(weight))
    return sum_of(parts).log_softmax()


def opinion_scores(scorer: OpinionScorer, views: Sequence[ViewInput], rows: ComparedRows) -> Tensor:
    """Scores (n, K) by one opinion: a sum of its parts, times 1/√(number of views of the row) if it is a mean."""
    total = sum_of([_part_scores(part, views, rows) for part in scorer.parts])
    if scorer.views:
        count = sum_of([views[i].mask for i in scorer.views])
        total = total / count.at_least(1.0).apply("Sqrt")
    return total + scorer.intercept


def _part_scores(part: PartScorer, views: Sequence[ViewInput], rows: ComparedRows) -> Tensor:
    """Scores (n, K), zero for rows without the view or without neighbors."""
    if isinstance(part, KernelScorer):
        view = views[part.view]
        return scorer_expansion(part).scores(view, rows) * view.mask
    if isinstance(part, GraphScorer):
        return neighbor_scores(part.nodes, part.node_scores, views, rows)[0]
    raise TypeError(f"Parts of the type {type(part).__name__} have no form in ONNX.")


def mixture_log_probabilities(mixture: Mixture, logits: Sequence[Tensor]) -> Tensor:
    """log softmax(c log Σ_k w_k softmax(c_k z_k)), (n, K), of the logits z_k (n, K) of each part."""
    log_p = [(z * float(c)).log_softmax() for z, c in zip(logits, mixture.scales, strict=True)]
    weighted = [log + float(np.log(w)) for log, w in zip(log_p, mixture.weights, strict=True) if w > 0.0]
    if len(log_p) == 1:
        mixed = log_p[0]
    else:  # log Σ exp, with the largest term taken out
        graph = log_p[0].graph
        largest = graph.apply("Max", *weighted)
        mixed = sum_of([(log - largest).apply("Exp") for log in weighted]).apply("Log") + largest
    return (mixed * mixture.scale).log_softmax()
