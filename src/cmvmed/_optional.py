"""Import of packages that only some functions need, and the command that installs them."""

import json
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from os import environ
from pathlib import Path
from shlex import quote
from types import ModuleType


def import_optional(name: str, extra: str | None, purpose: str) -> ModuleType:
    """Import a package that is not a dependency of cmvmed itself.

    Parameters
    ----------
    name : str
        Module to import.
    extra : str or None
        Extra of cmvmed that installs the package. None if no extra is meant for it: the error then names the package
        itself.
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
        command = f"pip install {package}" if extra is None else install_command(extra)
        raise ImportError(f"{purpose} needs {package}. Install it with: {command}") from error


def install_command(extra: str) -> str:
    """The command that adds an extra, or several with commas between them, to cmvmed as it is installed.

    From a checkout it names the folder, from another address that address: a name alone is looked up in an index, which
    need not have cmvmed.
    """
    root = _checkout()
    if root is not None:
        place = "." if root == Path.cwd() else str(root)
        return f"{_pip()} install --editable {quote(f'{place}[{extra}]')}"
    address = _address()
    requirement = f"cmvmed[{extra}]" if address is None else f"cmvmed[{extra}] @ {address}"
    return f"{_pip()} install {quote(requirement)}"


def _checkout() -> Path | None:
    """The folder of the repository, if this file lies in one."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "src" / "cmvmed").is_dir() else None


def _address() -> str | None:
    """Where pip took cmvmed from, if not from an index: a folder, a file or a repository (PEP 610)."""
    try:
        text = distribution("cmvmed").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    if text is None:
        return None
    found = json.loads(text)
    version_control = found.get("vcs_info", {}).get("vcs")
    return f"{version_control}+{found['url']}" if version_control else str(found["url"])


def _pip() -> str:
    """The pip of this Python: its path is needed in a virtual environment that is not active."""
    is_active = sys.prefix == sys.base_prefix or environ.get("VIRTUAL_ENV") == sys.prefix
    return "pip" if is_active else f"{quote(sys.executable)} -m pip"
