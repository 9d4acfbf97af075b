"""The labeling page in a cell of a notebook: the same page and session, with messages to the kernel as requests."""

import asyncio
import json
import re
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cmvmed._optional import import_optional
from cmvmed.labeling.server import build_app, new_token
from cmvmed.labeling.session import LabelingSession
from cmvmed.workbench.label_store import LabelStore, labels_path

STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "notebook.js", "panels.js", "page.js")
MODULE_WORDS = re.compile(r"^(import .*|export )", flags=re.MULTILINE)  # of files that are put into one function


def labeling_widget(
    project_file: str | PathLike[str] = "cmvmed.toml", *, learn: bool = True, random_share: float = 0.2
) -> Any:
    """The labeling page as a widget of Jupyter, Colab and other notebooks; needs the extra ``cmvmed[notebook]``.

    Each label is on disk, in the file beside the project file that ``cmvmed label`` and ``cmvmed train`` use, before the
    next row is shown. While a cell runs, the kernel answers nothing, and the page says so.

    Parameters
    ----------
    project_file : path of the project file, default="cmvmed.toml"
    learn : bool, default=True
        Whether a model learns meanwhile, in a process of its own.
    random_share : float, default=0.2
        Part of the labels that are of random rows, which show the accuracy and the class shares.

    Returns
    -------
    widget : anywidget.AnyWidget
        With the attribute ``session``; ``widget.close()`` ends it.

    Examples
    --------
    >>> from cmvmed.labeling import labeling_widget
    >>> try:
    ...     labeling_widget("no_such_file.toml")
    ... except (ImportError, ValueError):
    ...     print("no widget")
    no widget
    """
    anywidget = import_optional("anywidget", "notebook", "The labeling widget")
    file = Path(project_file)
    session = LabelingSession(file, LabelStore(labels_path(file)), learn=learn, random_share=random_share)
    app = build_app(session, new_token(), frozenset()).app  # without its guard: Jupyter checks who sends messages

    class LabelingWidget(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
        _esm = widget_source()

        def close(self) -> None:
            session.close()
            super().close()

    widget = LabelingWidget()
    widget.session = session
    widget.on_msg(lambda _, message, buffers: widget.send(*answer(app, message)))
    return widget


def widget_source() -> str:
    """The JavaScript module of the widget: the files of the page in one function, so that each cell has its own page."""
    markup = re.search(r"<body>(.*)</body>", _static("page.html"), flags=re.DOTALL)
    if markup is None:
        raise ValueError("page.html has no body.")
    styles = "\n".join(map(_static, STYLES))
    page = f'<style>{styles}</style><div class="page">{markup[1]}</div>'
    code = "\n".join(MODULE_WORDS.sub("", _static(name)) for name in SCRIPTS)
    body = f"const PAGE = {json.dumps(page)};\n{code}\nreturn leave;"
    return f"function render({{ model, el }}) {{\n{body}\n}}\nexport default {{ render }};\n"


def _static(name: str) -> str:
    return files("cmvmed.labeling").joinpath("static", *name.split("/")).read_text(encoding="utf-8")


def answer(app: Any, message: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """What the application of the page says to a request: number, status and JSON, or a status and bytes."""
    with ThreadPoolExecutor(1) as pool:  # since a loop runs in the thread of the kernel
        status, kind, content = pool.submit(asyncio.run, _respond(app, message["path"], message["body"])).result()
    found: dict[str, Any] = {"id": message["id"], "status": status, "type": kind}
    if kind.startswith("application/json") and "/api/export" not in message["path"]:
        return {**found, "json": json.loads(content)}, []
    return found, [content]


async def _respond(app: Any, path: str, body: dict[str, Any] | None) -> tuple[int, str, bytes]:
    """Status, media type and content of an answer."""
    address, sent = urlsplit(path), list[MutableMapping[str, Any]]()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "path": unquote(address.path),
        "query_string": address.query.encode(),
        "headers": [(b"content-type", b"application/json")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(part: MutableMapping[str, Any]) -> None:
        sent.append(part)

    try:
        await app(scope, receive, send)
    except Exception as error:  # such as a full disk: the cell says it, and does not say that the label is saved
        return 500, "application/json", json.dumps({"error": str(error)}).encode()
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    content = b"".join(part.get("body", b"") for part in sent[1:])
    return sent[0]["status"], headers.get("content-type", ""), content
