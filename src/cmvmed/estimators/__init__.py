"""The scikit-learn estimators: they validate at the border, call the core, and store what it returns."""

from cmvmed.estimators.cmvmed import CMVMED
from cmvmed.estimators.med import MED

__all__ = ["CMVMED", "MED"]
