"""The labeling page in Chromium, by the keyboard alone: what a user does, sees, and cannot break."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager

import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")
pytest.importorskip("soundfile", reason="the footsteps are wav files")

from selenium.webdriver.common.keys import Keys

from cmvmed.labeling.server import opening_page
from cmvmed.workbench import Project
from cmvmed.workbench.label_store import LabelStore
from tests.labeling.driven import JOBS, Page, serving
from tests.pages.browser import MARKS, SCREENS, chromium, overflow

pytestmark = MARKS
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile"), logs=("browser", "performance")) as driver:
        yield driver


@pytest.fixture(scope="module", params=list(JOBS))
def job(request, tmp_path_factory):
    """A project of each kind, 30 of whose rows are labeled on the page."""
    folder = tmp_path_factory.mktemp(request.param)
    truth = JOBS[request.param](folder)
    with serving(folder) as server, chromium(tmp_path_factory.mktemp("profile")) as driver:
        page = Page(driver, server.address)
        n_given = server.request("/api/status")["labeled"]
        rows = page.label_rows(truth, 30)
        status = server.wait_until(lambda s: s["fitted_labels"] == n_given + 30 and not s["learning"])
        yield request.param, server, page, truth, rows, n_given, status


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A server of a table, for tests that label little."""
    folder = tmp_path_factory.mktemp("table")
    JOBS["table"](folder)
    with serving(folder) as server:
        for name in ("crawl", "back"):
            server.request("/api/classes", {"name": name})
        for row in range(12):
            assert server.try_label(row, ("crawl", "back")[row % 2]) == 200
        server.wait_until(lambda s: s["estimate"] is not None and not s["learning"])
        yield server


def labels_in(folder):
    with LabelStore(folder / "cmvmed.labels.sqlite") as store:
        return {item: event.label for item, event in store.current().items() if event.action == "label"}


@contextmanager
def second_window(page, address):
    """Another window of the same browser, which has its own session storage."""
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("window")
    try:
        yield Page(page.browser, address)
    finally:
        page.browser.close()
        page.browser.switch_to.window(first)


def test_thirty_rows_are_labeled_by_keyboard(job):
    kind, server, page, truth, rows, n_given, status = job
    assert len(set(rows)) == 30
    assert status["labeled"] == n_given + 30
    exported = page.browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "fetch('/api/export?format=csv', {headers: {Authorization: `Bearer ${sessionStorage.token}`}})"
        ".then(r => r.text()).then(done)"
    )
    assert sorted(line.split(",")[:2] for line in exported.splitlines()[1:]) == sorted([r, truth[r]] for r in rows)
    panels = page.script("return [...document.querySelectorAll('.panel h3')].map(h => h.textContent)")
    views = [view.name for view in Project.load(server.folder).settings.views]
    assert panels == views
    assert len(page.script("return [...document.querySelectorAll('canvas.spectrogram')]")) == (
        4 if kind == "sound" else 0
    )


def test_how_often_each_class_is_can_be_said_once_or_skipped(table, browser):
    page = Page(browser, table.address)
    page.wait(lambda: page.script("return document.getElementById('shares').open"))
    typed = {"crawl: at least percent": "20", "crawl: at most percent": "40"}
    for name, value in typed.items():
        browser.find_element("css selector", f"[aria-label='{name}']").send_keys(value)
    page.script("document.querySelector('#shares-form button').click()")
    page.wait(lambda: page.text("saved") == "Saved: how often each class is")
    assert not page.script("return document.getElementById('shares').open")
    assert Project.load(table.folder).settings.model["class_prior"] == {"crawl": [0.2, 0.4]}
    table.wait_until(lambda s: s["shares"] == {"crawl": [0.2, 0.4]} and not s["learning"])
    again = Page(browser, table.address)
    again.wait(lambda: not again.script("return document.getElementById('shares').hidden"))
    assert not again.script("return document.getElementById('shares').open")
    values = "return [...document.querySelectorAll('#shares-list input')].map(i => i.value)"
    assert again.script(values) == ["20", "40", "", ""]
    again.script("for (const i of document.querySelectorAll('#shares-list input')) i.value = '';")
    again.script("document.querySelector('#shares-form button').click()")
    table.wait_until(lambda s: s["shares"] == {})


def test_the_page_says_how_good_the_model_is_and_whether_to_go_on(job):
    *_, page, _, _, n_given, status = job
    e = status["estimate"]
    page.wait(lambda: page.text("accuracy") == f"{100 * e['mean']:.1f} %")
    page.wait(lambda: page.text("learning") == "up to date")  # what is shown below is of the last fit then
    assert page.text("count") == f"{n_given + 30} of {status['rows']} rows"
    assert page.text("interval") == f"90 % interval {100 * e['low']:.1f}–{100 * e['high']:.1f} %"
    assert page.text("held-out") == f"{100 * e['held_out']:.1f} % predicted correctly"
    assert page.text("labels-only") == f"{100 * e['labels_only']:.1f} % by the labels alone"
    assert page.text("advice") == status["advice"]
    n, low, high = e["n_held_out"], 100 * e["held_out_low"], 100 * e["held_out_high"]
    assert page.text("held-out-title") == f"Of {n:.0f} held-out labels"
    assert page.text("held-out-interval") == f"90 % interval {low:.1f}–{high:.1f} %"
    assert page.text("fitted") == f"fitted to {n_given + 30} labels"
    assert bool(page.text("gain")) == ("first" in e)


def test_opinions_are_shown_and_hidden(job):
    *_, page, _, _, _, _ = job
    page.press_and_wait(Keys.ARROW_RIGHT)  # a row that was asked for after the fit
    shown = "return document.querySelectorAll('.panel meter').length"
    assert page.script(shown) > 0
    page.press("o")
    assert page.script(shown) == 0
    assert page.script("return document.getElementById('opinions-button').getAttribute('aria-pressed')") == "false"
    page.press("o")
    assert page.script(shown) > 0


def test_waveforms_fit_their_panels_and_one_cursor_crosses_all(job):
    kind, _, page, *_ = job
    if kind != "sound":
        pytest.skip("has no signals")
    for width in (1400, 700, 390, 1400):
        page.resize(width)
        page.wait(
            lambda: page.script(
                "return [...document.querySelectorAll('.signal')].every(s => s.querySelector('.uplot') && "
                "s.querySelector('.uplot').offsetWidth === s.clientWidth)"
            )
        )
    page.script(
        "const b = document.querySelector('.signal').getBoundingClientRect();"
        "document.querySelector('.signal').dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + 300}))"
    )
    lines = page.script("return [...document.querySelectorAll('.line.cursor')].map(l => [l.hidden, l.style.left])")
    assert [hidden for hidden, _ in lines] == [False] * 4
    assert [float(left.removesuffix("px")) for _, left in lines] == pytest.approx([300.0] * 4, abs=1.0)


def test_space_plays_and_stops_a_sound_with_a_visible_line(job):
    kind, _, page, *_ = job
    if kind != "sound":
        pytest.skip("has no sound")
    playing = "return [...document.querySelectorAll('.line.playing')].filter(l => !l.hidden).length"
    buttons = "return [...document.querySelectorAll('button.play')].map(b => b.textContent)"
    page.press(" ")
    page.wait(lambda: page.script(playing) == 4)
    assert page.script(buttons) == ["Stop", "Play", "Play", "Play"]
    page.press(" ")
    page.wait(lambda: page.script(playing) == 0)
    page.script("document.querySelectorAll('button.play')[2].focus()")
    page.press(" ")
    page.wait(lambda: page.script(buttons) == ["Play", "Play", "Stop", "Play"])
    page.press_and_wait(Keys.ARROW_RIGHT)
    assert page.script(playing) == 0
    page.script("document.activeElement.blur()")
    page.press(" ")  # the sensor that was played last
    page.wait(lambda: page.script(buttons) == ["Play", "Play", "Stop", "Play"])
    page.press(" ")


def test_no_errors_were_logged(job):
    *_, page, _, _, _, _ = job
    assert page.browser.get_log("browser") == []


def test_a_file_leads_the_browser_to_the_page(browser, table, tmp_path):
    page = Page(browser, opening_page(tmp_path, table.address).as_uri())
    assert page.script("return location.pathname + location.search") == "/"


def test_undo_unsure_new_class_and_corrections(browser, table):
    page = Page(browser, table.address)
    first = page.text("row-title")
    page.label_as("crawl")
    assert labels_in(table.folder)[first] == "crawl"
    page.press("u")
    page.wait(lambda: page.text("row-title") == first and page.text("current") == "Not labeled yet")
    assert first not in labels_in(table.folder)
    page.press_and_wait("s")
    page.wait(lambda: "unsure" in page.text("unsure-count"))
    assert first not in labels_in(table.folder)
    second = page.text("row-title")
    page.label_as("butterfly")
    assert labels_in(table.folder)[second] == "butterfly"
    page.press_and_wait(Keys.ARROW_LEFT)
    assert (page.text("row-title"), page.text("current")) == (second, "Labeled butterfly")
    page.label_as("back")
    assert labels_in(table.folder)[second] == "back"
    page.press("/", second, Keys.ENTER)  # an old label, found by its id
    page.wait(lambda: page.text("row-title") == second and page.text("current") == "Labeled back")
    page.press_and_wait(Keys.DELETE)
    assert second not in labels_in(table.folder)


def test_classes_and_doubtful_labels_are_reviewed(browser, table):
    page = Page(browser, table.address)
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("id", "strategy")).select_by_value("review")
    Select(browser.find_element("id", "review-class")).select_by_value("back")
    page.wait(lambda: page.text("reason") == "Shown because: labeled 'back'")
    assert page.text("current") == "Labeled back"


def test_labels_are_there_after_the_page_and_the_server_are_opened_again(browser, tmp_path):
    truth = JOBS["table"](tmp_path)
    with serving(tmp_path) as server:
        rows = Page(browser, server.address).label_rows(truth, 5)
        page = Page(browser, server.address)  # closed and opened
        assert page.text("count").startswith("5 of")
        assert server.stop() == 130
    with serving(tmp_path) as server:
        page = Page(browser, server.address)
        assert page.text("count").startswith("5 of")
        assert page.text("row-title") not in rows
    assert labels_in(tmp_path) == {row: truth[row] for row in rows}


def test_two_windows_cannot_overwrite_each_other(browser, table):
    first = Page(browser, table.address)
    row = first.text("row-title")
    with second_window(first, table.address) as second:
        assert second.text("row-title") != row  # a row that is shown is not proposed to another window
        second.press("/", row, Keys.ENTER)
        second.wait(lambda: second.text("row-title") == row)
        second.label_as("crawl")
    first.press("2")
    first.wait(lambda: "changed in another window" in first.text("message"))
    assert first.text("current") == "Labeled crawl"
    assert labels_in(table.folder)[row] == "crawl"
    first.press("2")  # now the label was seen, and a change is meant
    first.wait(lambda: labels_in(table.folder)[row] == "back")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_fits(browser, table, width, scheme):
    page = Page(browser, table.address, width, scheme, height=844)
    page.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert overflow(browser) == 0
    buttons = (
        "return [...document.querySelectorAll('.class, .tools button')].map(b => {const r = b.getBoundingClientRect();"
    )
    inside = buttons + " return r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth})"
    assert all(page.script(inside))  # classes are at hand without scrolling
    page.script("document.querySelector('h2').style.width = arguments[0] + 'px'", width + 50)
    assert overflow(browser) > 0  # a wide element would be noticed


@pytest.fixture
def hostile(tmp_path):
    lines = [
        f'"{HOSTILE}{i}",{i % 5},{i % 3},"{HOSTILE} text {i} </p><script>window.hacked=2</script>",' for i in range(40)
    ]
    head = f'id,acc_x,gyr_x,note,"{HOSTILE}"'
    (tmp_path / "rows.csv").write_text("\n".join([head, *lines]), encoding="utf-8")
    (tmp_path / "cmvmed.toml").write_text(
        f'[data]\npath = "rows.csv"\nid = "id"\n[views."{HOSTILE}"]\ncolumns = ["acc_x", "{HOSTILE}"]\n'
        '[views.gyr]\ncolumns = "gyr_*"\n[views.note]\ncolumns = "note"\n[columns]\nnote = "text"\n'
    )
    return tmp_path


def test_names_and_texts_are_shown_as_text_and_nothing_else_is_requested(browser, hostile):
    with serving(hostile) as server:
        browser.get("about:blank")
        browser.get_log("performance"), browser.get_log("browser")
        page = Page(browser, server.address, 390)
        assert HOSTILE in page.text("row-title")
        assert HOSTILE in page.text("panels")
        assert "<script>" in page.text("panels")
        for name in (f"{HOSTILE} a", "</button><script>window.hacked=3</script>"):
            page.label_as(name)
            page.label_as(name)
        server.wait_until(lambda s: s["fitted_labels"] == 4 or s["problem"])
        page.press_and_wait(Keys.ARROW_RIGHT)
        page.press("/", HOSTILE, Keys.ENTER)
        page.wait(lambda: page.script("return document.querySelectorAll('#found button').length") > 0)
        assert page.script("return window.hacked") is None
        assert page.script("return document.querySelectorAll('img, iframe, body script, object').length") == 0
        assert overflow(browser) == 0
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert len(sent) > 10
        assert {address for address in sent if not address.startswith((server.origin, "data:,", "about:"))} == set()
        assert browser.get_log("browser") == []  # no violation of the content policy either


def test_context_numbers_and_two_annotators(browser, tmp_path):
    """A link, a picture and medians are shown; Ann and Ben label the same row, disagree, and the review settles it."""
    lines = [f"w{i},https://example.org/{i},p.png,{i % 5}.5,{i % 3}.25," for i in range(30)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,video,photo,acc_x,gyr_x,label", *lines]), encoding="utf-8")
    (tmp_path / "p.png").write_bytes(PIXEL)
    (tmp_path / "cmvmed.toml").write_text(
        '[data]\npath = "rows.csv"\nid = "id"\nlabels = "label"\ncontext = ["video", "photo"]\n'
        'ignore = ["video", "photo"]\n[views.acc]\ncolumns = "acc_*"\n[views.gyr]\ncolumns = "gyr_*"\n'
    )

    def choose(strategy):
        page.script(
            "const s = document.getElementById('strategy'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
            strategy,
        )

    def be(name):
        page.script(
            "const n = document.getElementById('annotator'); n.value = arguments[0]; n.dispatchEvent(new Event('change'))",
            name,
        )

    with serving(tmp_path) as server:
        browser.get("about:blank")
        page = Page(browser, server.address, 390)
        page.wait(lambda: page.script("return document.querySelector('#context img')?.naturalWidth") == 1)
        assert page.script("return document.querySelector('#context a').rel") == "noopener noreferrer"
        assert "from the mean" in page.text("panels")
        be("Ann")
        first = page.text("row-title")
        page.label_as("walk")
        be("Ben")
        choose("second")
        page.wait(lambda: page.text("row-title") == first)
        assert page.text("current") == "Not labeled yet"
        page.add_class("run")
        page.press("2")
        page.wait(lambda: page.text("agreement") == "Ann and Ben agree on 0 of 1 row (kappa 0.00). To review: 1.")
        choose("disputed")
        page.wait(lambda: "Ann says 'walk', Ben says 'run'" in page.text("reason"))
        page.press("1")
        page.wait(lambda: page.text("agreement").endswith("Nothing to review."))
        assert overflow(browser) <= 0


def test_another_page_cannot_read_the_rows(browser, table, tmp_path):
    page = tmp_path / "other.html"
    page.write_text("<!doctype html><title>other</title>")
    browser.get(page.as_uri())
    answer = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "fetch(arguments[0] + '/api/status', {headers: {Authorization: 'Bearer ' + arguments[1]}})"
        ".then(r => done('read ' + r.status), () => done('refused'))",
        table.origin,
        table.token,
    )
    browser.get_log("browser")
    assert answer == "refused"


def test_names_of_columns_stay_on_one_line_on_a_narrow_page(browser, table):
    page = Page(browser, table.address, width=390)
    lines = (
        "return [...document.querySelectorAll('.numbers tbody th')].map(cell => {const range = document.createRange();"
        " range.selectNodeContents(cell); return range.getClientRects().length})"
    )
    page.wait(lambda: page.script(lines))
    assert set(page.script(lines)) == {1}
    page.script("document.querySelectorAll('.numbers th').forEach(cell => cell.style.overflowWrap = 'anywhere')")
    assert max(page.script(lines)) > 1
