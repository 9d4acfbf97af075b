"""Figures in the manner of scikit-learn's displays. They need matplotlib, which the extra ``plot`` installs.

Confusion matrices, calibration and learning curves are drawn by scikit-learn's own ``ConfusionMatrixDisplay``,
``CalibrationDisplay`` and ``LearningCurveDisplay``; here is what it does not have.
"""

from cmvmed.plots.model_displays import MembersDisplay, ViewsDisplay
from cmvmed.plots.recording_displays import RowDisplay, TimelineDisplay

__all__ = ["MembersDisplay", "RowDisplay", "TimelineDisplay", "ViewsDisplay"]
