"""Classification with several sensors, many unlabelled recordings and a handful of labels."""

__version__ = "0.1.0"
