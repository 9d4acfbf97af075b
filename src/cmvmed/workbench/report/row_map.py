"""A map of the rows: the two directions in which their views differ most, with labels and consensus."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.decomposition import PCA, TruncatedSVD

from cmvmed.pages.formatting import format_percentage, join_names, plural
from cmvmed.pages.svg import Axis, Element, element, svg_root, to_markup
from cmvmed.workbench.report.model_facts import ModelFacts, column_statistics
from cmvmed.workbench.tables.columns import FloatArray
from cmvmed.workbench.view_encoders import absent_rows, is_sparse

WIDTH, HEIGHT, MARGIN = 640.0, 480.0, 14.0
MAX_POINTS, MAX_LABELED = 2000, 600  # rows that are drawn; of them, labeled ones at most
CLIPPED = 3.0  # standard deviations beyond which a value is drawn nearer, so that few rows do not fill the map
SHAPES = ("disc", "square", "triangle", "diamond", "cross", "bar", "down", "plus")  # of the classes, largest first
OTHERS = 7  # classes with a shape of their own if there are more than shapes; the others share the last


@dataclass(frozen=True)
class RowMap:
    """The map with its legend."""

    figure: str
    legend: tuple[tuple[str, str, str], ...]  # name of a class, its style, and the path of its shape in a square of 12
    sentence: str


def draw_map(facts: ModelFacts) -> RowMap | None:
    """The map; None if the rows have fewer than two dimensions that vary."""
    rows = _drawn_rows(facts)
    found = map_positions(facts.table.views, rows)
    if found is None:
        return None
    positions, explained = found
    codes = facts.distributions[rows].argmax(axis=1)
    slots, names = _slots(facts)
    is_labeled = facts.codes[rows] >= 0
    x = Axis(*_extent(positions[:, 0]), MARGIN, WIDTH - MARGIN)
    y = Axis(*_extent(positions[:, 1]), HEIGHT - MARGIN, MARGIN)
    points = np.column_stack([[x(value) for value in positions[:, 0]], [y(value) for value in positions[:, 1]]])
    parts = [element("rect", x=0.5, y=0.5, width=WIDTH - 1.0, height=HEIGHT - 1.0, class_="frame")]
    for labeled, group, size in ((False, "consensus", 2.6), (True, "labeled", 5.0)):
        for slot in range(len(names)):
            own = points[(is_labeled == labeled) & (slots[codes] == slot)]
            if len(own):
                parts.append(_marks(own, slot, size, f"{group} k{slot}", names[slot]))
    shown = f"{len(rows):,} of {facts.n_rows:,} rows" if len(rows) < facts.n_rows else f"{len(rows):,} rows"
    sentence = (
        f"{shown}, of which {int(is_labeled.sum()):,} labeled, at the two directions in which the columns of all views vary most "
        f"({format_percentage(explained, 0)} of their variance)."
    )
    n_lacking = int(np.any([absent_rows(matrix[rows]) for matrix in facts.table.views.values()], axis=0).sum())
    if n_lacking:
        sentence += (
            f" {plural(n_lacking, 'row lacks', 'rows lack')} a view, which counts as its mean and moves the marks toward the "
            "middle."
        )
    description = (
        f"{sentence} Classes {join_names(names)} have shapes and colors of their own; labeled rows are larger."
    )
    svg = svg_root("figure-map", "Map of the rows", description, WIDTH, HEIGHT, *parts)
    svg.set("class", "map")
    legend = tuple((name, f"k{slot}", shape_path(6.0, 6.0, slot, 4.2)) for slot, name in enumerate(names))
    return RowMap(to_markup(svg), legend, sentence)


def _drawn_rows(facts: ModelFacts) -> NDArray[np.intp]:
    """All rows, or a random part of the labeled and of the unlabeled ones."""
    rng = np.random.default_rng(0)
    labeled = np.flatnonzero(facts.codes >= 0)
    if len(labeled) > MAX_LABELED:
        labeled = rng.choice(labeled, MAX_LABELED, replace=False)
    unlabeled = facts.unlabeled
    if len(unlabeled) > MAX_POINTS - len(labeled):
        unlabeled = rng.choice(unlabeled, MAX_POINTS - len(labeled), replace=False)
    return np.sort(np.concatenate([labeled, unlabeled]))


def map_positions(views: dict[str, Any], rows: NDArray[np.intp]) -> tuple[FloatArray, float] | None:
    """Positions (m, 2) of some rows, and the share of variance that they show; None if fewer than two columns vary.

    Columns are standardized and views scaled so that each has the same total variance; an absent view is at its mean.
    """
    blocks = [block for matrix in views.values() if (block := _standardized(matrix, rows)) is not None]
    if not blocks or sum(block.shape[1] for block in blocks) < 2 or len(rows) < 3:
        return None
    if all(isinstance(block, np.ndarray) for block in blocks):
        matrix = np.hstack(blocks)
        pca = PCA(2, svd_solver="full" if min(matrix.shape) <= 500 else "randomized", random_state=0)
        return pca.fit_transform(matrix), float(pca.explained_variance_ratio_.sum())
    svd = TruncatedSVD(2, random_state=0)
    positions = svd.fit_transform(csr_array(hstack([csr_array(block) for block in blocks], format="csr")))
    return positions, float(svd.explained_variance_ratio_.sum())


def _standardized(matrix: Any, rows: NDArray[np.intp]) -> Any | None:
    """Rows of a view with unit total variance; None if no column varies. Words are not centered, so they stay sparse."""
    mean, scale = column_statistics(matrix)
    kept = np.flatnonzero(scale > 0.0)
    if not len(kept):
        return None
    if is_sparse(matrix):
        taken = csr_array(matrix[rows][:, kept])
        absent = absent_rows(matrix[rows])
        taken.data[np.isnan(taken.data)] = 0.0
        keep = csr_array((np.where(absent, 0.0, 1.0), (np.arange(len(rows)),) * 2), shape=(len(rows),) * 2)
        return csr_array(keep @ taken / np.sqrt(float((scale[kept] ** 2).sum())))
    z = np.clip((matrix[rows][:, kept] - mean[kept]) / scale[kept], -CLIPPED, CLIPPED)
    return np.nan_to_num(z, nan=0.0) / np.sqrt(len(kept))


def _slots(facts: ModelFacts) -> tuple[NDArray[np.intp], list[str]]:
    """The shape of each class, (K,), and the names of the shapes; many classes share the last."""
    order = np.argsort(-facts.model.class_prior_, kind="stable")
    slots = np.empty(len(order), dtype=np.intp)
    slots[order] = np.arange(len(order))
    if len(order) <= len(SHAPES):
        return slots, [facts.class_names[k] for k in order]
    names = [*(facts.class_names[k] for k in order[:OTHERS]), f"{len(order) - OTHERS} other classes"]
    return np.minimum(slots, OTHERS), names


def _extent(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _marks(points: FloatArray, slot: int, size: float, style: str, name: str) -> Element:
    """All rows of a class in one path, which is much shorter than one element for each."""
    steps = "".join(shape_path(float(px), float(py), slot, size) for px, py in points)
    return element("g", element("title", name), element("path", d=steps), class_=style)


def shape_path(x: float, y: float, slot: int, size: float) -> str:
    """The shape of a class around a point as a closed path."""
    shape, s = SHAPES[slot], size
    if shape == "disc":
        r = 1.05 * s
        return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0z"
    t = s / 2.6  # half of the width of a bar
    corners = {
        "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
        "triangle": [(0.0, -1.3 * s), (1.25 * s, s), (-1.25 * s, s)],
        "diamond": [(0.0, -1.4 * s), (1.4 * s, 0.0), (0.0, 1.4 * s), (-1.4 * s, 0.0)],
        "bar": [(-1.4 * s, -0.5 * s), (1.4 * s, -0.5 * s), (1.4 * s, 0.5 * s), (-1.4 * s, 0.5 * s)],
        "down": [(0.0, 1.3 * s), (1.25 * s, -s), (-1.25 * s, -s)],
        "plus": _plus(1.4 * s, t),
        "cross": [(0.71 * (a - b), 0.71 * (a + b)) for a, b in _plus(1.4 * s, t)],
    }[shape]
    return "M" + "L".join(f"{x + a:.1f} {y + b:.1f}" for a, b in corners) + "z"


def _plus(s: float, t: float) -> list[tuple[float, float]]:
    return [(-t, -s), (t, -s), (t, -t), (s, -t), (s, t), (t, t), (t, s), (-t, s), (-t, t), (-s, t), (-s, -t), (-t, -t)]
