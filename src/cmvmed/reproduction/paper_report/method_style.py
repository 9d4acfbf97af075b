"""How the methods are drawn."""

from __future__ import annotations

from cmvmed.pages.charts import OTHER
from cmvmed.reproduction.method_names import (
    CMV_MED,
    CMV_MED_PRINTED,
    MV_MED,
    SINGLE_VIEW_PREFIX,
    SVM_2K,
    without_kernel,
)


def method_style(method: str) -> str:
    """Style of a method: a color for each of the paper's methods, gray for the others and for other kernels."""
    if method.startswith(SINGLE_VIEW_PREFIX) and method == without_kernel(method):
        return "single"
    styles = {CMV_MED: "complete", CMV_MED_PRINTED: "printed", MV_MED: "mvmed", SVM_2K: "svm2k"}
    return styles.get(method, OTHER)
