"""A trained project that several commands start from."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def trained_windows(tmp_path_factory):
    """A folder with windows.csv, cmvmed.toml and model.cmvmed, and the true classes of the rows by identifier."""
    pytest.importorskip("pandas", reason="projects need cmvmed[workbench]")
    from cmvmed.workbench import Project, init
    from tests.workbench.jobs import write_windows

    folder = tmp_path_factory.mktemp("windows")
    classes = write_windows(folder)
    (folder / "cmvmed.toml").write_text(init(folder / "windows.csv", folder / "cmvmed.toml").text)
    Project.load(folder).train(n_stages=2).save(folder / "model.cmvmed")
    return folder, {f"w{i:03d}": name for i, name in enumerate(classes)}


@pytest.fixture
def inside(trained_windows, tmp_path, monkeypatch):
    """A copy of the trained project in the current folder; the true classes by identifier."""
    folder, truth = trained_windows
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return truth


@pytest.fixture
def no_refits(monkeypatch):
    """Reports without the refits of their learning curve, where these are not the point."""
    monkeypatch.setattr("cmvmed.workbench.report.learning_curve.PARTS", ())
