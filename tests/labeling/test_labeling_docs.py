"""docs/labeling_page.md: its example runs, its files are what is written, its keys are those of the page."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from cmvmed.labeling import LabeledRow, export_rows
from cmvmed.labeling.progress import STABLE_CHANGE, STABLE_LABELS
from cmvmed.labeling.session import STRATEGIES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "labeling_page.md").read_text(encoding="utf-8")
ROWS = [LabeledRow("step 1", "human", seconds=1.5), LabeledRow("step 2", None, seconds=2.0)]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_example():
    (block,) = blocks("python")
    names = {}
    exec(compile(block, "docs/labeling_page.md", "exec"), names)
    assert names["rows"] == ROWS


def test_the_files_are_those_that_are_written():
    assert blocks("csv") == [export_rows(ROWS, "csv").decode()]
    track, table = blocks("text")
    assert table == export_rows(ROWS, "raven").decode()
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(export_rows(ROWS, "audacity"))) as archive:
        assert archive.read("000001.txt").decode() == track


def test_the_keys_are_those_of_the_page():
    page = files("cmvmed.labeling").joinpath("static", "page.html").read_text(encoding="utf-8")
    shown = set(re.findall(r"<kbd>([^<]+)</kbd>", page)) - {"del"} | {"Delete"}
    described = set(re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE))))
    assert described == shown


@pytest.mark.parametrize("text", STRATEGIES.values())
def test_orders_are_described(text):
    assert f"\n| {text} |" in PAGE


def test_numbers_agree():
    assert (STABLE_LABELS, STABLE_CHANGE) == (10, 0.01)
    assert "the last ten labels" in PAGE
    assert "At 1 % or less" in PAGE


def test_commands_exist():
    from click.testing import CliRunner

    from cmvmed.cli.label_command import command

    described = CliRunner().invoke(command, ["--help"]).output
    options = set(re.findall(r"cmvmed label (--[a-z]+)", PAGE)) | set(re.findall(r"(--format) (\w+)", PAGE)[0][:1])
    assert options
    assert all(option in described for option in options)
    for form in re.findall(r"--format (\w+)", PAGE):
        assert form in described


def test_the_film_is_small():
    film = ROOT / "docs" / "labeling.gif"
    assert film.read_bytes()[:4] == b"GIF8"
    assert film.stat().st_size <= 1_000_000
