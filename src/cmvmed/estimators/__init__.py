"""The scikit-learn estimators: they validate input, call the core, and store what it returns."""

from cmvmed.estimators._suggestions import Suggestions
from cmvmed.estimators.cmvmed import CMVMED
from cmvmed.estimators.corls import CoRLS
from cmvmed.estimators.first_suggestions import suggest_first
from cmvmed.estimators.med import MED
from cmvmed.estimators.mvmed import MVMED
from cmvmed.estimators.svm2k import SVM2K

__all__ = ["CMVMED", "MED", "MVMED", "SVM2K", "CoRLS", "Suggestions", "suggest_first"]
