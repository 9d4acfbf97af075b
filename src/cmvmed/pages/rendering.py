"""From templates to a page in a file: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from cmvmed._optional import import_optional
from cmvmed.pages.atomic_file import atomic_file

SHARED = "cmvmed.pages"


def read_template(name: str, package: str = SHARED) -> str:
    """Text of a template or style sheet of a package; the shared one if the package has none of that name."""
    own = files(package).joinpath("templates", name)
    return (own if own.is_file() else files(SHARED).joinpath("templates", name)).read_text(encoding="utf-8")


def render(template: str, package: str, values: Mapping[str, object]) -> str:
    """A template of a package as HTML; all values are escaped unless the template marks them as safe."""
    jinja2 = import_optional("jinja2", "report", "The report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: read_template(name, package)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(template).render(values))


def _check_target(path: str | Path, *, overwrite: bool = True) -> Path:
    """The path of a page, if the page can be written there."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} does not exist; create it or choose another file.")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the path of a file.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; choose another name, or pass overwrite=True.")
    return target


@contextmanager
def new_page(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` at the end; that it can be written is found out at the start."""
    target = _check_target(path, overwrite=overwrite)
    with atomic_file(target) as temporary:
        yield temporary
        _check_target(target, overwrite=overwrite)  # another process may have written it


def write_page(text: str, path: str | Path) -> None:
    """Write a page to a file, completely or not at all; an existing file is replaced."""
    with new_page(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
