"""The server: what is let in, and what each request answers."""

import json

import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")
pytest.importorskip("httpx2", reason="the test client of starlette needs httpx2")

from starlette.testclient import TestClient

from cmvmed.labeling import LabelingSession
from cmvmed.labeling.server import MAX_BODY, build_app, new_token
from cmvmed.workbench.label_store import LabelStore
from tests.labeling.test_session import project  # noqa: F401 (a fixture)

HOST = "127.0.0.1:8765"


@pytest.fixture
def session(project):  # noqa: F811
    opened = LabelingSession(project, LabelStore(project.with_name("labels.sqlite")), learn=False)
    yield opened
    opened.close()


@pytest.fixture
def token():
    return new_token()


@pytest.fixture
def client(session, token):
    app = build_app(session, token, frozenset({HOST}))
    return TestClient(app, base_url=f"http://{HOST}", headers={"Authorization": f"Bearer {token}"})


def send(client, path, **body):
    return client.post(path, json=body)


def test_a_row_is_shown_labeled_and_taken_back(client, session):
    row = send(client, "/api/next", strategy="random", window="w").json()
    answer = send(
        client, "/api/labels", row=row["row"], action="label", label="right", seen=None, window="w", chosen_by="random"
    ).json()
    assert answer["status"]["labeled"] == 2
    assert session.store.current()[row["id"]].label == "right"
    assert send(client, "/api/undo", window="w").json()["row"] == row["row"]
    assert send(client, "/api/undo", window="w").json() == {"row": None}
    assert client.get("/api/status").json()["labeled"] == 1


def test_a_second_window_gets_a_conflict_with_the_current_label(client):
    body = {"row": 3, "action": "label", "chosen_by": "random", "seen": None}
    assert send(client, "/api/labels", **body, label="right", window="one").status_code == 200
    answer = send(client, "/api/labels", **body, label="left", window="two")
    assert answer.status_code == 409
    assert answer.json()["current"]["label"] == "right"


def test_a_second_opinion_does_not_see_the_first(client, session):
    body = {"row": 3, "action": "label", "chosen_by": "random", "seen": None, "window": "one", "annotator": "anna"}
    assert send(client, "/api/labels", **body, label="right").status_code == 200
    row = send(client, "/api/next", strategy="second", window="two", annotator="ben").json()
    assert (row["id"], row["label"], row["opinions"]) == ("r3", None, None)
    assert "right" not in row["reason"]
    assert send(client, "/api/next", strategy="second", window="two", annotator="anna").json() == {"row": None}
    assert session.store.current()["r3"].annotator == "anna"
    assert send(client, "/api/labels", **{**body, "annotator": 7}, label="left").status_code == 400


def test_no_picture_is_read_that_the_data_do_not_name(client):
    assert client.get("/api/picture/1", params={"column": "note"}).status_code == 400


def test_rough_shares_reach_the_project_file(client, session):
    send(client, "/api/classes", name="right")
    assert send(client, "/api/shares", shares={"left": [0.25, 0.5]}).json()["shares"] == {"left": [0.25, 0.5]}
    assert "class_prior = { left = [0.25, 0.5] }" in session.project_file.read_text()
    for wrong in ({"left": 0.5}, {"up": [0, 1]}, "half", None):
        answer = send(client, "/api/shares", shares=wrong)
        assert answer.status_code == 400
    assert client.get("/api/status").json()["shares"] == {"left": [0.25, 0.5]}


def test_rows_are_found_by_a_part_of_their_id(client):
    assert [row["id"] for row in client.get("/api/search", params={"q": "R1"}).json()["rows"]] == ["r1", "r10", "r11"]


def test_labels_are_exported(client):
    send(client, "/api/labels", row=3, action="label", label="right", seen=None, window="w", chosen_by="suggest")
    answer = client.get("/api/export", params={"format": "csv"})
    assert answer.text.splitlines()[1].startswith("r3,right,,suggest,")
    assert "labels.csv" in answer.headers["content-disposition"]
    assert client.get("/api/export", params={"format": "raven"}).status_code == 400


@pytest.mark.parametrize(
    "path", ["/api/status", "/api/rows/1", "/api/sound/1?column=x", "/api/picture/1?column=x", "/api/export?format=csv"]
)
@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer ", "Bearer \u00e9"])
def test_no_data_without_the_token(client, path, given):
    client.headers.pop("Authorization")
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    answer = client.get(path, headers=headers)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("path", ["/api/labels", "/api/next", "/api/undo", "/api/classes"])
def test_no_change_without_the_token(client, session, path):
    client.headers.pop("Authorization")
    assert client.post(path, json={"name": "new", "window": "w"}).status_code == 401
    assert session.store.revision == 0
    assert session.store.classes == ["left"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", ""])
def test_other_names_of_the_host_are_refused(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 421  # DNS rebinding


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(client, headers):
    assert client.get("/api/status", headers=headers).status_code == 403
    assert client.post("/api/undo", json={"window": "w"}, headers=headers).status_code == 403


def test_a_file_may_lead_to_the_page_but_not_to_data(client):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.get("/page.js", headers=headers).status_code == 403
    assert client.get("/api/status", headers=headers).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status_code == 403


def test_requests_of_its_own_page_are_answered(client):
    headers = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/status", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/static/page.html", "/vendor/uPlot.iife.min.js", "/%2e%2e/store.py", "//etc/passwd"],
)
def test_there_is_no_other_file(client, path):
    assert client.get(path).status_code in (404, 421)


@pytest.mark.parametrize("path", ["/", "/page.js", "/panels.js", "/page.css", "/uPlot.iife.min.js", "/uPlot.min.css"])
def test_every_answer_has_the_headers_that_forbid_other_sources(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_names_no_other_server(client):
    for path in ("/", "/page.js", "/panels.js", "/page.css"):
        assert "http://" not in client.get(path).text
        assert "https://" not in client.get(path).text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/labels", {}),
        ("/api/labels", {"row": 99, "action": "label", "label": "a", "chosen_by": "random", "window": "w"}),
        ("/api/labels", {"row": "1", "action": "label", "label": "a", "chosen_by": "random", "window": "w"}),
        ("/api/labels", {"row": 1, "action": "drop", "label": "a", "chosen_by": "random", "window": "w"}),
        ("/api/labels", {"row": 1, "action": "label", "label": {"a": 1}, "chosen_by": "random", "window": "w"}),
        ("/api/labels", {"row": 1, "action": "label", "label": "a", "chosen_by": "random", "window": "w", "seen": "x"}),
        ("/api/next", {"strategy": "magic", "window": "w"}),
        ("/api/next", {"strategy": "random", "window": 7}),
        ("/api/next", {"strategy": "random", "window": "w", "skip": "all"}),
        ("/api/classes", {"name": ""}),
        ("/api/undo", {}),
    ],
)
def test_requests_that_mean_nothing_get_one_sentence(client, session, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")
    assert session.store.revision == 0


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b"null", b"[" * 60_000, b'{"window":' * 6_000])
def test_bodies_that_are_no_json_objects_are_refused(client, body):
    assert client.post("/api/undo", content=body, headers={"Content-Type": "application/json"}).status_code == 400


def test_forms_and_large_bodies_are_refused(client):
    assert client.post("/api/undo", data={"window": "w"}).status_code == 415
    large = json.dumps({"window": "w" * MAX_BODY}).encode()
    assert client.post("/api/undo", content=large, headers={"Content-Type": "application/json"}).status_code == 413


def test_sound_of_columns_that_are_no_sound_is_refused(client):
    assert client.get("/api/sound/1", params={"column": "acc_x"}).status_code == 400
    assert client.get("/api/sound/1", params={"column": "../../etc/passwd"}).status_code == 400
