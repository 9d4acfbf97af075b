"""The page's server: loopback only, a token for every request of data, and checks of Host and Origin."""

import hmac
import json
import secrets
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cmvmed._optional import import_optional
from cmvmed.labeling.exchange import EXPORTS, export_rows
from cmvmed.labeling.session import STRATEGIES, LabelingSession
from cmvmed.workbench.label_store import Conflict

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY = 64 * 1024  # bytes of a request
STATIC = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "connection.js": ("connection.js", "text/javascript; charset=utf-8"),
    "panels.js": ("panels.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "uPlot.iife.min.js": ("vendor/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    "uPlot.min.css": ("vendor/uPlot.min.css", "text/css; charset=utf-8"),
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Endpoint: TypeAlias = "Callable[[Request], Awaitable[Response]]"


def new_token() -> str:
    """A secret for the address of the page."""
    return secrets.token_urlsafe(32)


def opening_page(folder: Path, address: str) -> Path:
    """Write a file that leads a browser to the page; only this user can read it.

    The command line of a browser, which other users can see, then has the name of the file and not the token.
    """
    handle, name = tempfile.mkstemp(prefix="open-", suffix=".html", dir=folder)  # mode 0600
    with open(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
            f'<title>cmvmed label</title><a href="{address}">Label</a>\n'
        )
    return Path(name)


class Guard:
    """Lets a request through only if it is for this server, from its own page, and, for data, has the token.

    Parameters
    ----------
    app : the application behind it
    token : the secret
    hosts : values of the Host header that name this server, such as "127.0.0.1:8765"
    when_opened : called when a request has the token
    """

    def __init__(self, app: Any, token: str, hosts: frozenset[str], when_opened: Callable[[], None]) -> None:
        self.app, self.token, self.hosts, self.when_opened = app, token, hosts, when_opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is not None:
            await _answer(send, *problem)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                kept = [(k, v) for k, v in message.get("headers", []) if k.decode().lower() not in HEADERS]
                message["headers"] = kept + _encoded_headers()
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        if scope["type"] != "http":
            return 400, "Only HTTP is served."
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "") not in self.hosts:
            return 421, "This server answers requests to its own address only."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return 403, "Requests of other pages are refused."
        # The page itself holds no data and cannot be framed; a file leads to it (see ``opening_page``).
        leads_here = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not leads_here:
            return 403, "Requests of other pages are refused."
        if scope["path"].startswith("/api/"):
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
                return 401, "The token is missing or wrong: open the address that cmvmed label printed."
            self.when_opened()
            if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
                return 415, "Requests have to be JSON."
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > MAX_BODY or "transfer-encoding" in headers:
                return 413, "The request is too large."
        return None


def _encoded_headers() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in HEADERS.items()]


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers + _encoded_headers()})
    await send({"type": "http.response.body", "body": body})


def build_app(
    session: LabelingSession, token: str, hosts: frozenset[str], when_opened: Callable[[], None] = lambda: None
) -> Guard:
    """The application of a session."""
    import_optional("starlette", "label", "The labeling page")
    from starlette.applications import Starlette
    from starlette.routing import Route

    api = _Api(session)
    routes = [
        *(Route(f"/{name}", _file_endpoint(name)) for name in STATIC),
        Route("/api/status", _endpoint(api.status)),
        Route("/api/next", _endpoint(api.next), methods=["POST"]),
        Route("/api/rows/{row}", _endpoint(api.row)),
        Route("/api/sound/{row}", _endpoint(api.sound)),
        Route("/api/picture/{row}", _endpoint(api.picture)),
        Route("/api/search", _endpoint(api.search)),
        Route("/api/labels", _endpoint(api.label), methods=["POST"]),
        Route("/api/undo", _endpoint(api.undo), methods=["POST"]),
        Route("/api/classes", _endpoint(api.add_class), methods=["POST"]),
        Route("/api/shares", _endpoint(api.shares), methods=["POST"]),
        Route("/api/export", _endpoint(api.export)),
    ]
    return Guard(Starlette(routes=routes), token, hosts, when_opened)


def _file_endpoint(name: str) -> Endpoint:
    """Answers with a file of the page, whatever is asked."""
    from starlette.responses import Response

    file, media_type = STATIC[name]
    content = files("cmvmed.labeling").joinpath("static", file).read_bytes()

    async def endpoint(_: "Request") -> Response:
        return Response(content, media_type=media_type)

    return endpoint


def _endpoint(act: Callable[[dict[str, Any]], Any]) -> Endpoint:
    """Answers with what a function of the request's body gives, or with an error, in JSON."""
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, Response

    async def endpoint(request: "Request") -> Response:
        body = await _body(request)
        try:
            found = await run_in_threadpool(act, body)
        except Conflict as conflict:
            current = None if conflict.current is None else asdict(conflict.current)
            return JSONResponse({"error": str(conflict), "current": current}, status_code=409)
        except (ValueError, KeyError, TypeError) as error:
            return JSONResponse({"error": _sentence(error)}, status_code=400)
        return found if isinstance(found, Response) else JSONResponse(found)

    return endpoint


async def _body(request: "Request") -> dict[str, Any]:
    """The JSON object that was sent, or the parameters of the address."""
    from starlette.exceptions import HTTPException

    if request.method != "POST":
        return {**request.query_params, **request.path_params}
    try:
        body = await request.json()
    except (ValueError, RecursionError) as error:  # RecursionError: lists within lists
        raise HTTPException(400, "The request is not JSON.") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "The request is not a JSON object.")
    return body


def _sentence(error: Exception) -> str:
    return f"The request has no {error}." if isinstance(error, KeyError) else str(error)


class _Api:
    """The requests of the page."""

    def __init__(self, session: LabelingSession) -> None:
        self.session = session

    def status(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**self.session.status(), "strategies": STRATEGIES, "exports": list(EXPORTS)}

    def next(self, body: dict[str, Any]) -> dict[str, Any]:
        strategy, window = _text(body, "strategy"), _text(body, "window")
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy is one of {', '.join(STRATEGIES)}.")
        skip = body.get("skip", [])
        if not isinstance(skip, list) or not all(type(row) is int for row in skip):
            raise ValueError("skip is a list of rows.")
        annotator = _text({"annotator": "", **body}, "annotator")
        choice = self.session.next_row(strategy, window, of_class=body.get("class"), skip=skip, annotator=annotator)
        if choice is None:
            return {"row": None}
        hidden = {"label": None, "unsure": False, "opinions": None} if choice.strategy == "second" else {}
        return {**self.session.row(choice.row), **hidden, "reason": choice.reason, "strategy": choice.strategy}

    def row(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.session.row(_number(body, "row"))

    def sound(self, body: dict[str, Any]) -> "Response":
        from starlette.responses import Response

        return Response(self.session.sound(_number(body, "row"), _text(body, "column")), media_type="audio/wav")

    def picture(self, body: dict[str, Any]) -> "Response":
        from starlette.responses import Response

        content, media_type = self.session.picture(_number(body, "row"), _text(body, "column"))
        return Response(content, media_type=media_type)

    def export(self, body: dict[str, Any]) -> "Response":
        from starlette.responses import Response

        form = _text(body, "format")
        content = export_rows(self.session.labeled_rows(), form)
        name, media_type = EXPORTS[form].file_name, EXPORTS[form].media_type
        return Response(
            content, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'}
        )

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        rows = self.session.search(_text(body, "q"))
        return {"rows": [{"row": r, "id": self.session.ids[r], "label": self.session.label_of(r)} for r in rows]}

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        seen = body.get("seen")
        if seen is not None and type(seen) is not int:
            raise ValueError("seen is the revision that the page has of the row.")
        event = self.session.record(
            body["row"],
            _text(body, "action"),
            body.get("label"),
            chosen_by=_text(body, "chosen_by"),
            window=_text(body, "window"),
            seen=seen,
            annotator=_text({"annotator": "", **body}, "annotator"),
        )
        return {"revision": event.revision, "status": self.session.status()}

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        event = self.session.undo(_text(body, "window"))
        if event is None:
            return {"row": None}
        return self.session.row(self.session.row_of[event.item])

    def add_class(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"name": self.session.add_class(_text(body, "name"))}

    def shares(self, body: dict[str, Any]) -> dict[str, Any]:
        given = body["shares"]
        if not isinstance(given, dict):
            raise ValueError("shares is an object from class to two numbers.")
        self.session.set_shares(given)
        return self.session.status()


def _text(body: dict[str, Any], key: str) -> str:
    value = body[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is a text.")
    return value


def _number(body: dict[str, Any], key: str) -> int:
    value = str(body[key])
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{key} is a whole number.")
    return int(value)
