"""Classification with several sensors, many unlabelled recordings and a handful of labels."""

from cmvmed.estimators import CMVMED, MED
from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit

__all__ = ["CMVMED", "MED", "SemiSupervisedKFold", "SemiSupervisedShuffleSplit"]
__version__ = "0.1.0"
