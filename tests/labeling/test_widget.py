"""The labeling page in a notebook: the kernel answers as the server does, labels are on disk, keys stay in the cell."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")

from cmvmed.labeling import LabelingSession, labeling_widget
from cmvmed.labeling.server import build_app
from cmvmed.labeling.widget import SCRIPTS, _static, answer, widget_source
from cmvmed.workbench import ProjectError
from cmvmed.workbench.label_store import LabelStore
from tests.labeling.driven import write_table
from tests.pages.browser import MARKS, SCREENS, chromium

PATIENCE = 60.0  # seconds
LABEL = {"action": "label", "label": "crawl", "chosen_by": "random", "window": "w", "seen": None}


@pytest.fixture
def session(tmp_path):
    write_table(tmp_path)
    session = LabelingSession(tmp_path / "cmvmed.toml", LabelStore(tmp_path / "labels.sqlite"), learn=False)
    for name in ("crawl", "back"):
        session.add_class(name)
    yield session
    session.close()


@pytest.fixture
def app(session):
    return build_app(session, "token", frozenset()).app


def ask(app, path, body=None):
    found, buffers = answer(app, {"id": 7, "path": path, "body": body})
    assert found["id"] == 7
    return found["status"], found.get("json"), buffers


def on_disk(session):
    with LabelStore(session.store.path) as store:
        return {item: event.label for item, event in store.current().items() if event.action == "label"}


def test_requests_are_answered_as_by_the_server(app, session):
    status, row, _ = ask(app, "/api/next", {"strategy": "random", "window": "w"})
    assert status == 200
    status, saved, _ = ask(app, "/api/labels", {**LABEL, "row": row["row"]})
    assert (status, saved["status"]["labeled"]) == (200, 1)
    assert on_disk(session) == {row["id"]: "crawl"}
    assert ask(app, "/api/search?q=w00")[1]["rows"][0]["id"] == "w000"
    status, _, (content,) = ask(app, "/api/export?format=csv")
    assert status == 200
    assert row["id"] in content.decode()
    assert isinstance(ask(app, "/api/export?format=labelstudio")[2][0], bytes)
    assert ask(app, "/api/undo", {"window": "w"})[1]["id"] == row["id"]
    assert on_disk(session) == {}


def test_errors_are_answers_and_nothing_is_written(app, session, monkeypatch):
    assert ask(app, "/api/labels", {**LABEL, "row": 0})[0] == 200
    status, found, _ = ask(app, "/api/labels", {**LABEL, "row": 0, "label": "back"})
    assert (status, found["current"]["label"]) == (409, "crawl")
    status, found, _ = ask(app, "/api/labels", {**LABEL, "row": -1})
    assert (status, found["error"]) == (400, "There is no row -1; rows are 0 to 149.")
    assert ask(app, "/api/no_such")[0] == 404

    def full_disk(*arguments, **parameters):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session.store, "record", full_disk)
    status, found, _ = ask(app, "/api/labels", {**LABEL, "row": 1})
    assert status == 500
    assert "No space left" in found["error"]
    assert on_disk(session) == {"w000": "crawl"}


def test_the_files_fit_into_one_function():
    """Names at the top of one file do not hide those of another, which they import from each other on the page."""
    names = [re.findall(r"^(?:export )?(?:async )?(?:function|const|let) (\w+)", _static(f), re.M) for f in SCRIPTS[1:]]
    together = [name for own in names for name in own]
    assert len(together) > 50
    assert len(together) == len(set(together))
    replaced = set(re.findall(r"^export (?:async )?(?:function|const) (\w+)", _static("connection.js"), re.M))
    assert replaced <= set(names[0])
    assert re.findall(r"^(?:import|export).*", widget_source(), re.M) == ["export default { render };"]


def test_a_widget_of_anywidget_answers_messages(tmp_path):
    pytest.importorskip("anywidget", reason="the widget needs cmvmed[notebook]")
    write_table(tmp_path)
    widget = labeling_widget(tmp_path / "cmvmed.toml", learn=False)
    try:
        sent = []
        widget.send = lambda content, buffers=None: sent.append((content, buffers))
        widget._handle_custom_msg({"id": 1, "path": "/api/classes", "body": {"name": "crawl"}}, [])
        widget._handle_custom_msg({"id": 2, "path": "/api/labels", "body": {**LABEL, "row": 3}}, [])
        assert [content["id"] for content, _ in sent] == [1, 2]
        assert on_disk(widget.session) == {"w003": "crawl"}
        assert widget.session.store.path == tmp_path / "cmvmed.labels.sqlite"
        assert "export default" in widget.get_state("_esm")["_esm"]
        with pytest.raises(ProjectError):
            labeling_widget(tmp_path / "none.toml")
    finally:
        widget.close()


HARNESS = """<!doctype html><meta charset="utf-8"><title>notebook</title><body><div id="cell"></div>
<script type="module">
import widget from "/widget.js";
window.keys = 0;
document.addEventListener("keydown", () => { window.keys += 1; });
const handlers = new Set();
const model = {
  on: (_, act) => handlers.add(act), off: (_, act) => handlers.delete(act),
  send: async (message) => {
    const { content, buffers } = await (await fetch("/message", { method: "POST", body: JSON.stringify(message) })).json();
    const bytes = buffers.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
    for (const act of handlers) act(content, bytes);
  },
};
window.leave = widget.render({ model, el: document.getElementById("cell") });
</script>"""


@contextmanager
def notebook(app, kernel):
    """A page with the widget in it, whose messages are answered while the lock ``kernel`` is free."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            text, kind = (widget_source(), "text/javascript") if self.path == "/widget.js" else (HARNESS, "text/html")
            self.reply(text.encode(), f"{kind}; charset=utf-8")

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with kernel:
                content, buffers = answer(app, message)
            encoded = [base64.b64encode(part).decode() for part in buffers]
            self.reply(json.dumps({"content": content, "buffers": encoded}).encode(), "application/json")

        def reply(self, content, kind):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class Cell:
    """The widget as a user has it."""

    def __init__(self, browser, address):
        self.browser = browser
        browser.get(address)
        self.wait_for(lambda: self.text("row-title"))

    def run(self, script):
        return self.browser.execute_script(f"const root = document.getElementById('cell').shadowRoot; {script}")

    def text(self, name):
        return self.run(f"return root?.getElementById('{name}')?.textContent")

    def press(self, key):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(key).perform()

    def wait_for(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    pytest.importorskip("selenium", reason="browser tests need selenium")
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def in_browser(test):
    for mark in MARKS:
        test = mark(test)
    return test


@in_browser
def test_rows_are_labeled_by_keys_and_buttons(browser, app, session):
    with notebook(app, threading.Lock()) as address:
        cell = Cell(browser, address)
        cell.run("root.getElementById('row-title').focus()")
        first = cell.text("row-title")
        cell.press("1")
        cell.wait_for(lambda: cell.text("row-title") != first)
        assert on_disk(session) == {first: "crawl"}
        second = cell.text("row-title")
        cell.run("root.querySelector('[data-class=back]').click()")
        cell.wait_for(lambda: cell.text("row-title") != second)
        assert on_disk(session) == {first: "crawl", second: "back"}
        cell.press("u")
        cell.wait_for(lambda: cell.text("saved") == f"Undone: {second}")
        assert on_disk(session) == {first: "crawl"}
        assert browser.execute_script("return window.keys") == 0  # the notebook sees no key
        assert cell.run("return root.host.dataset.lmSuppressShortcuts") == "true"
        browser.execute_script("window.leave()")
        assert not [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]


@in_browser
def test_names_are_texts_in_a_notebook_too(browser, app, session):
    """Where no header forbids scripts."""
    hostile = "<img src=x onerror=window.hacked=1>"
    session.add_class(hostile)
    with notebook(app, threading.Lock()) as address:
        cell = Cell(browser, address)
        assert hostile in cell.text("classes")
        assert cell.run("return root.querySelector('#classes img')") is None
        assert browser.execute_script("return window.hacked") is None


@in_browser
def test_a_busy_kernel_loses_nothing_and_is_told_of(browser, app, session):
    kernel = threading.Lock()
    with notebook(app, kernel) as address:
        cell = Cell(browser, address)
        cell.run("root.getElementById('row-title').focus()")
        first = cell.text("row-title")
        with kernel:
            cell.press("2")
            cell.wait_for(lambda: "not saved" in cell.text("message"))
            assert cell.text("row-title") == first
            assert on_disk(session) == {}
        cell.wait_for(lambda: cell.text("saved") == f"Saved: {first}, back")
        assert on_disk(session) == {first: "back"}
        assert cell.text("message") == ""


@in_browser
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_nothing_is_cut_off_and_nothing_covers_the_notebook(browser, app, width, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    with notebook(app, threading.Lock()) as address:
        cell = Cell(browser, address)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        fixed = "return [...root.querySelectorAll('*')].filter((e) => getComputedStyle(e).position === 'fixed').length"
        assert cell.run(fixed) == 0
        page, ink = cell.run(
            "const s = getComputedStyle(root.querySelector('.page')); return [s.backgroundColor, s.color]"
        )
        dark = scheme == "dark"
        assert (sum(map(int, re.findall(r"\d+", page))) < 200) == dark
        assert (sum(map(int, re.findall(r"\d+", ink))) > 500) == dark
