"""``cmvmed datasets`` says what is there, what is missing, what is damaged, and where files go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from cmvmed import datasets
from cmvmed.cli import main as cli
from cmvmed.datasets.catalog import CATALOG

NO_FILES = {"digits", "breast-cancer"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command with no data folder but the one named, and an empty cache."""
    monkeypatch.delenv("CMVMED_DATA", raising=False)
    monkeypatch.setattr("cmvmed.datasets.locations.cache_folders", lambda: [tmp_path / "cache"])
    monkeypatch.setattr("cmvmed.datasets.catalog.cache_folders", lambda: [tmp_path / "cache"])

    def invoke(*arguments, **environment):
        return CliRunner().invoke(cli.main, ["datasets", *map(str, arguments)], env=environment)

    return invoke


def by_name(shown):
    return {entry["name"]: entry for entry in json.loads(shown.stdout)["datasets"]}


def test_without_files_only_the_bundled_data_are_there(run):
    shown = run("--json")
    entries = by_name(shown)
    assert shown.exit_code == 0
    assert {name for name, entry in entries.items() if entry["state"] == "there"} == NO_FILES
    assert all(entries[name]["get"] for name in set(entries) - NO_FILES)
    assert (entries["digits"]["rows"], entries["digits"]["classes"]) == (len(load_digits().target), 10)
    assert entries["digits"]["views"] == {"upper": 32, "lower": 32}


def test_list_says_where_to_get_a_missing_file_and_where_to_put_it(run, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    shown = run("--data-dir", folder)
    assert f"{folder}  (data folder given)" in shown.output
    assert "get https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51" in shown.output
    assert f"as  {folder}/webkb_course/course-cotrain-data.tar.gz" in shown.output
    assert "2 of 8 data sets are there." in shown.output


def test_without_a_folder_the_user_is_told_to_name_one(run):
    assert "name it by --data-dir or CMVMED_DATA" in run().output


def test_environment_names_the_folder(run, tmp_path):
    shown = run("--json", CMVMED_DATA=str(tmp_path))
    assert {"folder": str(tmp_path), "named_by": "CMVMED_DATA"} in json.loads(shown.stdout)["searched"]


def test_environment_that_names_no_folder_is_one_line(run):
    shown = run(CMVMED_DATA="/nowhere")
    assert shown.exit_code == 1
    assert shown.output == (
        "Error: the environment variable CMVMED_DATA names /nowhere, which is not a folder. Create it or correct the name.\n"
    )


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_damaged_file_is_named_and_exits_with_1(run, tmp_path, flags):
    (tmp_path / "mytrain.json").write_text("{}")
    shown = run("--data-dir", tmp_path, *flags)
    assert shown.exit_code == 1
    assert "damaged" in shown.output
    assert f"{tmp_path / 'mytrain.json'} has SHA-256" in shown.output


def test_part_of_the_files_is_told_from_none(run, tmp_path):
    (tmp_path / "PAGELINK.mat").write_bytes(b"some bytes")
    entry = by_name(run("--data-dir", tmp_path, "--json"))["webkb-preprocessed"]
    assert entry["state"] == "missing"
    assert entry["files"] == [str(tmp_path / "PAGELINK.mat")]
    assert "WebKB.mat was not found" in run("--data-dir", tmp_path).output


def test_file_that_is_there_is_counted(run, tmp_path, monkeypatch):
    """A small data set stands in for a published file, loaded through the same way."""
    source = Path(shutil.copy(__file__, tmp_path / "mytrain.json"))
    entry = next(entry for entry in CATALOG if entry.name == "sensit")
    stand_in = type(entry)(
        entry.name, entry.title, entry.call, lambda **where: datasets.load_digits_views(), entry.wanted
    )
    monkeypatch.setattr("cmvmed.datasets.catalog.CATALOG", (stand_in,))
    found = by_name(run("--data-dir", tmp_path, "--json"))["sensit"]
    assert (found["state"], found["bytes"], found["rows"]) == ("there", source.stat().st_size, 1797)
    assert "1,797 rows, 10 classes; views upper (32), lower (32)" in run("--data-dir", tmp_path).output


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_call_that_is_named_exists(entry):
    assert callable(getattr(datasets, entry.call.partition("(")[0]))
    assert len({file.folder for file in (*entry.wanted, *entry.others)}) <= 1
    assert all(file.url for file in entry.wanted)
