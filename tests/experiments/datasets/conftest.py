"""Folder of published data, and an empty cache without network for all other tests of the loaders."""

import os
from pathlib import Path

import pytest

from experiments.datasets import DatasetError, locations

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def data_folder():
    """The published files: the folder in CMVMED_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("CMVMED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"needs the published data files, which are not at {folder} (set CMVMED_DATA)")
    return folder


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path_factory):
    """No data folder in the environment, an empty cache, and a network that fails as it does offline."""
    monkeypatch.delenv("CMVMED_DATA", raising=False)
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(locations, "cache_folders", lambda: [cache])
    monkeypatch.setattr(locations, "_downloader", lambda: _offline)
    return cache


def _offline(url, output_file, pooch):
    raise ConnectionError(f"no network in tests: {url}")


@pytest.fixture(scope="session")
def outcome_of():
    """Call a function and return its result or the documented error; any other exception fails the test."""

    def outcome(function, *arguments):
        try:
            return function(*arguments)
        except DatasetError as error:
            return error

    return outcome
