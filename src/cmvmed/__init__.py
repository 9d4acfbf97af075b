"""Classification with several sensors, many unlabelled recordings and a handful of labels."""

from cmvmed.estimators import CMVMED, MED

__all__ = ["CMVMED", "MED"]
__version__ = "0.1.0"
