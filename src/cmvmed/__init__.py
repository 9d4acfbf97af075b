"""Classification with several sensors, many unlabelled recordings and a handful of labels."""

from cmvmed.estimators import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit

__all__ = ["CMVMED", "MED", "MVMED", "SVM2K", "CoRLS", "SemiSupervisedKFold", "SemiSupervisedShuffleSplit"]
__version__ = "0.1.0"
