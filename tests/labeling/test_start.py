"""The page starts fast: its own process imports neither scikit-learn nor the estimators, and reads while the other does."""

import subprocess
import sys

import pytest

from cmvmed.labeling import LabelingSession
from cmvmed.workbench.label_store import LabelStore
from cmvmed.workbench.user_errors import ProjectError
from tests.labeling.driven import write_table, write_texts

SLOW = (
    "sklearn",
    "scipy.stats",
    "scipy.signal",
    "scipy.sparse",
    "cmvmed.estimators",
    "cmvmed.features.mfcc",
    "librosa",
)
PROGRAM = """
import sys
from pathlib import Path
from cmvmed.labeling import LabelingSession
from cmvmed.labeling.server import build_app
from cmvmed.workbench.label_store import LabelStore

session = LabelingSession(Path("cmvmed.toml"), LabelStore(Path("labels.sqlite")), learn=False)
build_app(session, "token", frozenset())
assert session.next_row("random", "window") is not None
session.row(0), session.status(), session.close()
print(*sys.modules)
"""
ESTIMATORS = "import cmvmed; cmvmed.CMVMED; print(*sys.modules)"


def imported(folder, program):
    """The modules that are imported wherever a program prints them."""
    pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_a_row_is_shown_without_slow_libraries_which_would_be_noticed(tmp_path):
    write_table(tmp_path)
    page, estimators = imported(tmp_path, PROGRAM + ESTIMATORS)
    assert page & set(SLOW) == set()
    assert "sklearn" in estimators


def test_a_row_of_texts_is_shown_without_slow_libraries(tmp_path):
    write_texts(tmp_path)
    (page,) = imported(tmp_path, PROGRAM)
    assert page & set(SLOW) == set()


def test_the_learner_ends_if_the_rows_cannot_be_read(tmp_path):
    write_table(tmp_path)
    (tmp_path / "windows.csv").unlink()
    store, started = LabelStore(tmp_path / "labels.sqlite"), []

    class Watched(LabelingSession):
        def _read_rows(self):
            started.append(self._learner._process)
            super()._read_rows()

    with pytest.raises(ProjectError, match=r"windows\.csv"):
        Watched(tmp_path / "cmvmed.toml", store)
    (process,) = started
    process.join(timeout=30)
    assert process.exitcode is not None
