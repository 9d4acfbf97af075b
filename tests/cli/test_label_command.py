"""``cmvmed label``: labels of files in and out, and mistakes; the page itself is tested in tests/labeling."""

import asyncio
import json
import re
import socket
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from cmvmed.cli.label_command import _listener
from cmvmed.cli.main import main

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"r{i},{i}.5,{i % 3}," for i in range(12)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,acc_x,gyr_x,label", *lines]))
    (tmp_path / "cmvmed.toml").write_text(
        '[data]\npath = "rows.csv"\nid = "id"\nlabels = "label"\n'
        '[views.acc]\ncolumns = "acc_*"\n[views.gyr]\ncolumns = "gyr_*"\n'
    )
    (tmp_path / "own.csv").write_text("id,label\nr1,left\nr2,right\nr3,left\n")
    return lambda *arguments: CliRunner().invoke(main, ["label", *arguments])


def test_labels_go_in_and_out(run, tmp_path):
    shown = run("--import", "own.csv", "--export", "out.json", "--format", "labelstudio")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "3 labels of own.csv were added or changed." in shown.stdout
    tasks = json.loads((tmp_path / "out.json").read_text())
    assert [task["data"]["id"] for task in tasks] == ["r1", "r2", "r3"]
    assert run("--import", "out.json", "--export", "out.csv").stdout.startswith("0 labels of out.json were added")
    assert [line.split(",")[:2] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == [
        ["r1", "left"],
        ["r2", "right"],
        ["r3", "left"],
    ]


def test_all_commands_use_the_labels(run):
    run("--import", "own.csv", "--export", "out.csv")
    checked = CliRunner().invoke(main, ["check"])
    assert "3 labels of the labeling page (cmvmed.labels.sqlite)." in checked.output
    assert "12 rows, 3 labeled" in checked.output


def test_one_label_is_spoken_of_as_one(run, tmp_path):
    (tmp_path / "own.csv").write_text("id,label\nr1,left\n")
    shown = run("--import", "own.csv", "--export", "out.csv").stdout
    assert shown == "1 label of own.csv was added or changed.\n1 label was written to out.csv.\n"


def test_a_folder_in_which_nothing_can_be_written_is_named(run, monkeypatch):
    """SQLite says that it cannot open the file, whose copy would be of no use."""

    def refuse(*_, **__):
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(sqlite3, "connect", refuse)
    shown = run("--export", "out.csv")
    assert shown.exit_code == 1
    assert "cmvmed.labels.sqlite cannot be read or written" in shown.stderr
    assert "read-only: allow writing there, or copy the project to another folder" in shown.stderr
    assert "Restore" not in shown.stderr


def test_files_are_replaced_with_force_only(run, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    shown = run("--export", "out.csv")
    assert shown.exit_code == 1
    assert "--force" in shown.stderr
    assert (tmp_path / "out.csv").read_text() == "mine"
    assert run("--export", "out.csv", "--force").exit_code == 0


def test_unknown_rows_are_one_error_and_nothing_is_imported(run, tmp_path):
    (tmp_path / "own.csv").write_text("id,label\nr1,left\nnobody,right\n")
    shown = run("--import", "own.csv", "--export", "out.csv")
    assert shown.exit_code == 1
    assert "'nobody'" in shown.stderr
    assert "0 labels" in run("--export", "out.csv").stdout


def test_a_missing_project_is_named(run, tmp_path):
    (tmp_path / "cmvmed.toml").unlink()
    shown = run()
    assert shown.exit_code == 2
    assert "cmvmed init" in shown.stderr


def test_a_port_in_use_is_one_error(run):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        shown = run("--no-open", "--port", str(other.getsockname()[1]))
    assert shown.exit_code == 1
    assert "leave --port out" in shown.stderr


def test_the_browser_is_led_to_the_page_without_the_token_in_its_command_line(run, monkeypatch):
    from starlette.testclient import TestClient

    opened, statuses = [], []

    def serve(server, sockets):
        file = Path(urlsplit(opened[0]).path)
        assert file.stat().st_mode & 0o777 == 0o600
        address, token = re.search(r"url=(http://[\d.:]+)/\?token=([\w-]+)", file.read_text()).groups()
        client = TestClient(server.config.app, base_url=address)
        for given in ("wrong", token):
            found = client.get("/api/status", headers={"Authorization": f"Bearer {given}"})
            statuses.append((found.status_code, file.exists()))
        assert token not in opened[0]

    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("uvicorn.Server.run", serve)
    shown = run()
    assert shown.exit_code == 0, shown.output
    assert statuses == [(401, True), (200, False)]
    assert not list(Path().glob("*.html"))


def test_answers_are_sent_at_once():
    async def no_delay(listener):
        found = asyncio.get_running_loop().create_future()

        def accept(reader, writer):
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(accept, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await found

    with _listener(0) as listener:
        assert asyncio.run(no_delay(listener)) != 0
    with socket.create_server(("127.0.0.1", 0)) as usual:  # as if the protocol were not given
        assert asyncio.run(no_delay(usual)) == 0
