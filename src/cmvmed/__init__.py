"""Classification with several sensors, many unlabeled recordings and a handful of labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmvmed._config import config_context
    from cmvmed.estimators import CMVMED, MED, MVMED, SVM2K, CoRLS, Suggestions, suggest_first
    from cmvmed.model.archive import ModelFileError
    from cmvmed.model.file import load, save
    from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit

__all__ = [
    "CMVMED",
    "MED",
    "MVMED",
    "SVM2K",
    "CoRLS",
    "ModelFileError",
    "SemiSupervisedKFold",
    "SemiSupervisedShuffleSplit",
    "Suggestions",
    "config_context",
    "load",
    "save",
    "suggest_first",
]
__version__ = "0.1.0"
_HOMES = {
    "ModelFileError": "cmvmed.model.archive",
    "SemiSupervisedKFold": "cmvmed.model_selection",
    "SemiSupervisedShuffleSplit": "cmvmed.model_selection",
    "config_context": "cmvmed._config",
    "load": "cmvmed.model.file",
    "save": "cmvmed.model.file",
}  # the modules of public names that are not estimators


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that the command line need not wait for scikit-learn."""
    if name in ("estimators", "model_selection"):
        return import_module(f"cmvmed.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'cmvmed' has no attribute {name!r}")
    home = _HOMES.get(name, "cmvmed.estimators")
    globals()[name] = getattr(import_module(home), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
