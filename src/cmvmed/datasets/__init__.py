"""Multi-view data: published data sets as one X with named columns of views, and simulators of known ground truth."""

from cmvmed.datasets.afpild import fetch_afpild
from cmvmed.datasets.body_motion import make_body_motion
from cmvmed.datasets.bundled import load_breast_cancer_views, load_digits_views
from cmvmed.datasets.errors import DatasetError, DatasetNotFoundError
from cmvmed.datasets.footprintid import fetch_footprintid
from cmvmed.datasets.footsteps import make_footsteps
from cmvmed.datasets.gaussian import make_multiview_gaussian
from cmvmed.datasets.internet_ads import fetch_internet_ads
from cmvmed.datasets.machine_vibration import make_machine_vibration
from cmvmed.datasets.multiple_features import fetch_multiple_features
from cmvmed.datasets.sensit_vehicle import fetch_sensit_vehicle
from cmvmed.datasets.webkb import fetch_webkb_course

__all__ = [
    "DatasetError",
    "DatasetNotFoundError",
    "fetch_afpild",
    "fetch_footprintid",
    "fetch_internet_ads",
    "fetch_multiple_features",
    "fetch_sensit_vehicle",
    "fetch_webkb_course",
    "load_breast_cancer_views",
    "load_digits_views",
    "make_body_motion",
    "make_footsteps",
    "make_machine_vibration",
    "make_multiview_gaussian",
]
