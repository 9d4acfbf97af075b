"""Published multi-view data as one X with named columns of views, and simulated vibration of machines."""

from experiments.datasets.afpild import fetch_afpild
from experiments.datasets.internet_ads import fetch_internet_ads
from experiments.datasets.locations import DatasetError, DatasetNotFoundError
from experiments.datasets.machine_vibration import make_machine_vibration
from experiments.datasets.multiple_features import fetch_multiple_features
from experiments.datasets.sensit_vehicle import fetch_sensit_vehicle
from experiments.datasets.webkb import fetch_webkb_course

__all__ = [
    "DatasetError",
    "DatasetNotFoundError",
    "fetch_afpild",
    "fetch_internet_ads",
    "fetch_multiple_features",
    "fetch_sensit_vehicle",
    "fetch_webkb_course",
    "make_machine_vibration",
]
