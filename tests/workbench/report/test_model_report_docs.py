"""docs/model_report.md: its example runs, and it describes every verdict and section; its picture is small."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cmvmed.members.accuracy import WIDEST, AccuracyEstimate
from cmvmed.workbench.report import verdict
from cmvmed.workbench.report.learning_curve import MAX_REPEATS, MAX_ROWS, PARTS
from cmvmed.workbench.report.sensors import REDUNDANT
from tests.pages.parsed import parse
from tests.workbench.report.trained import train, write_activity

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "model_report.md").read_text(encoding="utf-8")


def test_the_example(tmp_path, monkeypatch):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    write_activity(tmp_path, n=80)
    train(tmp_path, "activity.csv")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.replace("overwrite=True", "with_learning_curve=False"), "docs/model_report.md", "exec"), {})
    assert parse((tmp_path / "report.html").read_text(encoding="utf-8")).one("h1").text


def test_every_verdict_is_described():
    code = inspect.getsource(verdict) + inspect.getsource(AccuracyEstimate.judge)
    labels = re.findall(r'return "(?:yes|no|partial|open)", "([^":]*)', code)
    assert len(labels) == 7
    assert all(f"| {label} |" in PAGE for label in labels)


def test_numbers_are_those_of_the_code():
    text = " ".join(PAGE.split())
    assert f"up to nine fits on at most {MAX_ROWS} rows" in text
    assert MAX_REPEATS * len(PARTS) == 9
    assert f"wider than {100 * AccuracyEstimate.wide:.0f} points" in text
    assert f"wider than {100 * WIDEST:.0f} points" in text
    assert f"at most {100 * REDUNDANT:.0f} % of the unlabeled rows" in text


def test_the_picture_is_there_and_small():
    picture = (DOCS / "model_report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 200_000
