"""``cmvmed suggest``, and the loop of training, suggestions, labels and training."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run


def labeled_ids(*options):
    """Identifiers of the rows that are labeled, by what ``cmvmed check`` counts."""
    from cmvmed.workbench import Project

    rows = Project.load(changes={"data.label_files": list(options)}).rows()
    return set(rows.ids[np.array([value is not None for value in rows.labels.values])])  # noqa: PD011


def test_train_suggest_fill_in_train(inside):
    shown = run("suggest", "-n", 6, "-o", "next.csv")
    assert shown.exit_code == 0, shown.output
    assert (
        "next.csv: 6 rows; fill in the column 'label', then:\n  cmvmed train --labels next.csv --force" in shown.stdout
    )
    table = pd.read_csv("next.csv")
    assert table.columns.tolist() == ["window_id", "label", "reason", "score", "random"]
    assert table.index[table["random"] == "yes"].tolist() == [4]  # the 15th label
    assert table["label"].isna().all()
    assert table["reason"].str.len().gt(5).all()
    assert table["window_id"].nunique() == 6
    assert not set(table["window_id"]) & labeled_ids()
    table["label"] = [inside[key] if position < 5 else None for position, key in enumerate(table["window_id"])]
    table.to_csv("next.csv", index=False)
    shown = run("train", "--no-report", "--set", "model.n_stages=2", "--labels", "next.csv", "--force")
    assert "200 rows, 15 of them labeled" in shown.stdout
    assert "The 1 label of a random row says" in shown.stdout
    again = pd.read_csv(StringIO(run("suggest", "-n", 6, "--labels", "next.csv").stdout))
    assert not set(again["window_id"]) & labeled_ids("next.csv")


@pytest.mark.usefixtures("inside")
def test_json_and_all_rows():
    content = json.loads(run("suggest", "-n", 1000, "--json").stdout)
    assert len(content["rows"]) == 190
    assert {"window_id", "label", "reason", "score", "random"} == set(content["rows"][0])
    assert sum(row["random"] == "yes" for row in content["rows"]) == 38
    none = json.loads(run("suggest", "-n", 10, "--random-share", 0, "--json").stdout)
    assert not any(row["random"] for row in none["rows"])


@pytest.mark.usefixtures("inside")
def test_mistakes():
    Path("next.csv").write_text("precious")
    assert "exists and was not changed" in run("suggest", "-o", "next.csv").stderr
    assert run("suggest", "-n", 0).exit_code == 2
    text = Path("cmvmed.toml").read_text().replace("[views.gyr]", "[views.other]")
    Path("cmvmed.toml").write_text(text)
    shown = run("suggest")
    assert shown.exit_code == 1
    assert "the model was trained with 'acc', 'gyr'; train it again" in shown.stderr
    Path("model.cmvmed").unlink()
    assert "`cmvmed train` writes one" in run("suggest").stderr
