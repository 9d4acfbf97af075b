"""The results that the paper reports.

Source: T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based
multi-view maximum entropy discrimination", ICASSP 2015, Table 1. The heading of the table calls the second number of
each entry a standard error and the text on Figure 2 a standard deviation; the size of the numbers fits a standard
deviation. Figure 2 is a plot without numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from cmvmed.reproduction.method_names import CMV_MED, CMV_MED_PAPER, MV_MED, SINGLE_VIEW_PREFIX, SVM_2K

SOURCE = "Xie, Nasrabadi and Hero, ICASSP 2015, Table 1"
N_SPLITS = 20


@dataclass(frozen=True)
class PaperResult:
    """One entry of the paper's Table 1: accuracy in percent on held-out rows, over 20 random splits."""

    data: str
    n_labeled: int
    method: str  # as in the result rows; "MED, view 1" and "MED, view 2" for the single views
    mean: float
    deviation: float


TABLE_1 = tuple(
    PaperResult(data, n_labeled, method, mean, deviation)
    for data, n_labeled, entries in (
        ("ARL-Footstep", 50, ((71.1, 5.3), (62.3, 10.2), (73.3, 5.2), (75.6, 6.5), (85.5, 6.1))),
        ("WebKB4", 15, ((76.6, 10.2), (77.1, 10.1), (79.0, 10.0), (77.9, 8.7), (91.7, 5.8))),
        ("Internet Ads", 50, ((87.3, 0.9), (86.2, 1.4), (82.5, 4.3), (88.8, 2.3), (92.7, 0.7))),
    )
    for method, (mean, deviation) in zip(
        (f"{SINGLE_VIEW_PREFIX}1", f"{SINGLE_VIEW_PREFIX}2", SVM_2K, MV_MED, CMV_MED), entries, strict=True
    )
)

# Data sets of the paper by the name of the task that uses the same data, or a substitute (ARL-Footstep is not public).
SAME_DATA = {"webkb": "WebKB4", "ads": "Internet Ads"}
SUBSTITUTES = {"footsteps": "ARL-Footstep", "sensit": "ARL-Footstep"}
# The paper's views 1 and 2, in the order in which its text describes them.
VIEWS = {"webkb": ("page", "link"), "ads": ("image", "context")}


def paper_result(dataset: str, n_labeled: int, method: str) -> PaperResult | None:
    """The paper's result for the same data, number of labels and method; None if there is none."""
    views = VIEWS.get(dataset, ())
    numbered = {f"{SINGLE_VIEW_PREFIX}{name}": f"{SINGLE_VIEW_PREFIX}{i}" for i, name in enumerate(views, start=1)}
    named = {**numbered, CMV_MED_PAPER: CMV_MED}
    wanted = (SAME_DATA.get(dataset), n_labeled, named.get(method, method))
    return next((result for result in TABLE_1 if (result.data, result.n_labeled, result.method) == wanted), None)
