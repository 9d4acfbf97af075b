"""Multi-view data as one X with named columns of views: bundled data, and simulators of known ground truth."""

from cmvmed.datasets.body_motion import make_body_motion
from cmvmed.datasets.bundled import load_breast_cancer_views, load_digits_views, load_room, write_room
from cmvmed.datasets.footsteps import make_footsteps
from cmvmed.datasets.gaussian import make_multiview_gaussian

__all__ = [
    "load_breast_cancer_views",
    "load_digits_views",
    "load_room",
    "make_body_motion",
    "make_footsteps",
    "make_multiview_gaussian",
    "write_room",
]
