"""The examples in docs/datasets.md run, and its tables have every loader and simulator."""

import re
from pathlib import Path

import numpy as np
import pytest

import cmvmed.datasets
import experiments.datasets

DOCUMENT = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)
PUBLIC = [*cmvmed.datasets.__all__, *experiments.datasets.__all__]
LOADERS = [name for name in PUBLIC if name.startswith(("fetch_", "load_"))]
SIMULATORS = [name for name in PUBLIC if name.startswith("make_")]


def run(block):
    names = {}
    exec(compile(block, "docs/datasets.md", "exec"), names)
    return names


def test_the_first_example(capsys):
    digits = run(BLOCKS[0])["digits"]
    assert digits.views == {"upper": slice(0, 32), "lower": slice(32, 64)}
    assert capsys.readouterr().out.startswith("Handwritten digits")


def test_the_example_of_missing_views(data_folder, monkeypatch):
    monkeypatch.setenv("CMVMED_DATA", str(data_folder))
    names = run(BLOCKS[1])
    assert names["complete"].shape[0] == 1051 - 7
    assert np.isfinite(names["filled"].data).all()


def test_gaussian_views():
    names = run(BLOCKS[2])
    problem = names["problem"]
    assert round(problem.bayes_error, 4) == 0.0869
    assert {view: round(error, 4) for view, error in problem.view_bayes_error.items()} == {
        "view1": 0.1357,
        "view2": 0.2119,
    }
    assert names["model"].score(problem.data, problem.target) > 0.8


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_every_simulator_is_described(simulator):
    assert f"`{simulator}`" in DOCUMENT


@pytest.mark.parametrize("loader", LOADERS)
def test_every_loader_is_in_the_table(loader):
    assert f"`{loader}(" in DOCUMENT
