"""docs/workbench.md: its example runs, its project file is valid, and every key, option and finding is described."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from cmvmed.cli.main import SECTIONS
from cmvmed.workbench import DataSettings, ViewSettings, WindowSettings
from cmvmed.workbench.column_encoders import MAX_CATEGORIES
from cmvmed.workbench.project_file import parse_project
from cmvmed.workbench.tables.columns import KINDS, MAX_BAD_SHARE
from cmvmed.workbench.toml_text import COMMENTS
from tests.workbench.jobs import write_windows

PAGE = (Path(__file__).parents[2] / "docs" / "workbench.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore:Held-out labels of . groups are too few")  # for sets
def test_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_windows(tmp_path)
    frame = pd.read_csv("windows.csv")
    frame[frame.columns[::-1]].drop(columns="stroke").to_csv("new.csv", index=False)
    names = {}
    (block,) = blocks("python")
    exec(compile(block, "docs/workbench.md", "exec"), names)
    assert set(names["predicted"]["class"]) == {"crawl", "back"}
    assert names["predicted"].index.tolist() == frame["window_id"].tolist()
    for column in names["predicted"].reset_index().columns:
        name = column.partition("_")[0] + "_*" if column.startswith(("prob", "share", "novelty")) else column
        assert f"| `{name}` |" in PAGE


def test_the_project_file_is_valid_and_its_comments_agree():
    block, _ = blocks("toml")
    settings = parse_project(block)
    assert [view.name for view in settings.views] == ["accelerometer", "gyroscope"]
    assert "number, boolean, date, category or text" in block
    assert KINDS == ("number", "boolean", "date", "category", "text")


def test_the_project_file_of_recordings_is_valid_and_its_comments_agree():
    _, block = blocks("toml")
    settings = parse_project(block)
    assert settings.windows == WindowSettings(length=2.0, step=1.0, annotations="annotations.csv")
    assert (settings.data.labels, [view.files for view in settings.views]) == ("label", ["left/*.wav", "right/*.wav"])
    for key in ("length", "step", "annotations"):
        assert f"# {COMMENTS[key]}\n" in block


@pytest.mark.parametrize(
    "key", [field.name for settings in (DataSettings, WindowSettings) for field in fields(settings)]
)
def test_every_key_of_data_is_in_the_table(key):
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert any(f"`{key}`" in row for row in rows)


def test_every_key_of_a_view_and_every_option_is_named():
    for field in fields(ViewSettings):
        assert field.name == "name" or f"`{field.name}`" in PAGE
    commands = [import_module(f"cmvmed.cli.{name}_command").command for name in SECTIONS["Your data"]]
    options = {name for command in commands for p in command.params for name in p.opts if name[:2] == "--"}
    assert options - {"--debug"} <= set(re.findall(r"--[a-z-]+", PAGE))
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= options | {"--debug"}
    assert all(f"cmvmed {name}" in PAGE for name in SECTIONS["Your data"])


def test_numbers_on_the_page():
    text = " ".join(PAGE.split())
    assert f"the {MAX_CATEGORIES} most frequent" in text
    assert MAX_BAD_SHARE == 0.1
    assert "at least nine in ten cells" in text
