"""The paper's own figures.

Source: T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based multi-view
maximum entropy discrimination", ICASSP 2015, Table 1. The table's heading calls the second number of each entry a standard
error, the text on Figure 2 speaks of the standard deviation, and the size of the numbers fits the latter. Figure 2 is a picture
without numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Xie, Nasrabadi and Hero, ICASSP 2015, Table 1"


@dataclass(frozen=True)
class PaperFigure:
    """One entry of the paper's Table 1: accuracy in percent on held-out rows, over 20 random splits."""

    data: str
    n_labeled: int
    method: str  # as in the rows of this library; "MED, view 1" and "MED, view 2" for the single views
    mean: float
    deviation: float


TABLE_1 = tuple(
    PaperFigure(data, n_labeled, method, mean, deviation)
    for data, n_labeled, entries in (
        ("ARL-Footstep", 50, ((71.1, 5.3), (62.3, 10.2), (73.3, 5.2), (75.6, 6.5), (85.5, 6.1))),
        ("WebKB4", 15, ((76.6, 10.2), (77.1, 10.1), (79.0, 10.0), (77.9, 8.7), (91.7, 5.8))),
        ("Internet Ads", 50, ((87.3, 0.9), (86.2, 1.4), (82.5, 4.3), (88.8, 2.3), (92.7, 0.7))),
    )
    for method, (mean, deviation) in zip(
        ("MED, view 1", "MED, view 2", "SVM-2K", "MV-MED", "CMV-MED"), entries, strict=True
    )
)

# The paper's data set that a data set here repeats, or (ARL-Footstep, which is not public) stands in for.
SAME_DATA = {"webkb": "WebKB4", "ads": "Internet Ads"}
STAND_INS = {"footsteps": "ARL-Footstep", "sensit": "ARL-Footstep"}
# The paper's views 1 and 2, in the order in which its text describes them.
VIEWS = {"webkb": ("page", "link"), "ads": ("image", "context")}


def paper_figure(dataset: str, n_labeled: int, method: str) -> PaperFigure | None:
    """The paper's figure for the same data, number of labels and method; None if it has none, or for other data."""
    numbered = {f"MED, view {name}": f"MED, view {i}" for i, name in enumerate(VIEWS.get(dataset, ()), start=1)}
    wanted = (SAME_DATA.get(dataset), n_labeled, numbered.get(method, method))
    return next((figure for figure in TABLE_1 if (figure.data, figure.n_labeled, figure.method) == wanted), None)
