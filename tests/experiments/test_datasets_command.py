"""``python -m experiments datasets`` shows which data sets are available, missing or damaged, and where to put files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

import cmvmed.datasets
import experiments.datasets
from experiments.commands import main
from experiments.datasets.catalog import CATALOG

NO_FILES = {"digits", "breast-cancer"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command without data folders except the given one, and with an empty cache."""
    monkeypatch.delenv("CMVMED_DATA", raising=False)
    monkeypatch.setattr("experiments.datasets.locations.cache_folders", lambda: [tmp_path / "cache"])
    monkeypatch.setattr("experiments.datasets.catalog.cache_folders", lambda: [tmp_path / "cache"])

    def invoke(*arguments, **environment):
        return CliRunner().invoke(main, ["datasets", *map(str, arguments)], env=environment)

    return invoke


def by_name(shown):
    return {entry["name"]: entry for entry in json.loads(shown.stdout)["datasets"]}


def test_without_files_only_the_bundled_data_are_available(run):
    shown = run("--json")
    entries = by_name(shown)
    assert shown.exit_code == 0
    assert {name for name, entry in entries.items() if entry["state"] == "available"} == NO_FILES
    assert all(entries[name]["get"] for name in set(entries) - NO_FILES)
    assert (entries["digits"]["rows"], entries["digits"]["classes"]) == (len(load_digits().target), 10)
    assert entries["digits"]["views"] == {"upper": 32, "lower": 32}


def test_list_shows_url_and_path_of_a_missing_file(run, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    shown = run("--data-dir", folder)
    assert f"{folder}  (data folder given)" in shown.output
    assert "download https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51" in shown.output
    assert f"to       {folder}/webkb_course/course-cotrain-data.tar.gz" in shown.output
    assert "2 of 9 data sets are available." in shown.output


def test_without_a_folder_the_options_are_named(run):
    assert "set --data-dir or CMVMED_DATA to its path" in run().output


def test_environment_names_the_folder(run, tmp_path):
    shown = run("--json", CMVMED_DATA=str(tmp_path))
    assert {"folder": str(tmp_path), "named_by": "CMVMED_DATA"} in json.loads(shown.stdout)["searched"]


def test_environment_variable_without_a_folder_is_one_line(run):
    shown = run(CMVMED_DATA="/nowhere")
    assert shown.exit_code == 1
    assert shown.output == (
        "Error: the environment variable CMVMED_DATA names /nowhere, which is not a folder. "
        "Create it or correct the name.\n"
    )


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_damaged_file_is_named_and_exits_with_1(run, tmp_path, flags):
    (tmp_path / "mytrain.json").write_text("{}")
    shown = run("--data-dir", tmp_path, *flags)
    assert shown.exit_code == 1
    assert "damaged" in shown.output
    assert f"{tmp_path / 'mytrain.json'} has SHA-256" in shown.output


def test_incomplete_files_are_listed(run, tmp_path):
    (tmp_path / "PAGELINK.mat").write_bytes(b"some bytes")
    entry = by_name(run("--data-dir", tmp_path, "--json"))["webkb-preprocessed"]
    assert entry["state"] == "missing"
    assert entry["files"] == [str(tmp_path / "PAGELINK.mat")]
    assert "WebKB.mat was not found" in run("--data-dir", tmp_path).output


def test_available_file_is_counted(run, tmp_path, monkeypatch):
    """A small data set replaces a published file and is loaded in the same way."""
    source = Path(shutil.copy(__file__, tmp_path / "mytrain.json"))
    entry = next(entry for entry in CATALOG if entry.name == "sensit")
    substitute = type(entry)(
        entry.name, entry.title, entry.call, lambda **where: cmvmed.datasets.load_digits_views(), entry.files
    )
    monkeypatch.setattr("experiments.datasets.catalog.CATALOG", (substitute,))
    found = by_name(run("--data-dir", tmp_path, "--json"))["sensit"]
    assert found["state"] == "available"
    assert (found["bytes"], found["rows"]) == (source.stat().st_size, 1797)
    assert "1,797 rows, 10 classes; views upper (32), lower (32)" in run("--data-dir", tmp_path).output


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_named_loader_exists(entry):
    module = experiments.datasets if entry.files else cmvmed.datasets
    assert callable(getattr(module, entry.call.partition("(")[0]))
    assert len({file.folder for file in (*entry.files, *entry.other_files)}) <= 1
    assert all(file.url or file.homepage.startswith("https://") for file in entry.files)


def test_what_each_data_set_is_for():
    from experiments.tasks import TASKS

    known = [task for entry in CATALOG for task in entry.tasks]
    assert sorted([*known, "footsteps", "gauss"]) == sorted(TASKS)  # the two are simulated
