"""Import of packages that only some functions need."""

from importlib import import_module
from types import ModuleType


def import_optional(name: str, extra: str | None, purpose: str) -> ModuleType:
    """Import a package that is not a dependency of cmvmed itself.

    Parameters
    ----------
    name : str
        Module to import.
    extra : str or None
        Extra of cmvmed that installs the package, as in ``pip install 'cmvmed[audio]'``. None if no extra is meant for
        it: the error then names the package itself.
    purpose : str
        What needs the package; the subject of the error message.

    Raises
    ------
    ImportError
        If the package is not installed; the message has the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        requirement = package if extra is None else f"'cmvmed[{extra}]'"
        raise ImportError(f"{purpose} needs {package}. Install it with: pip install {requirement}") from error
