"""Trained projects that several tests look at."""

from __future__ import annotations

import pytest

from cmvmed.workbench.report import model_page
from tests.pages.parsed import parse
from tests.workbench.report.trained import fit, train, write_activity, write_hostile


@pytest.fixture(scope="session")
def activity(tmp_path_factory):
    folder = tmp_path_factory.mktemp("activity")
    write_activity(folder)
    return train(folder, "activity.csv")


@pytest.fixture(scope="session")
def page(activity):
    text = model_page(activity.trained, activity.table, activity.findings, with_learning_curve=False)
    return parse(text)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    return fit(write_hostile(tmp_path_factory.mktemp("hostile")))
