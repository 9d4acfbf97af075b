"""Rough class shares in a project: for the classes that have labels, checked, and written to the project file."""

from __future__ import annotations

import tomllib

import pytest

from cmvmed.workbench import Project, init
from cmvmed.workbench.class_shares import check_ranges, prior_of_labeled, ranges_of, with_ranges, write_ranges
from cmvmed.workbench.toml_text import SHARES_HINT
from cmvmed.workbench.user_errors import ProjectError
from tests.core.factories import rejects
from tests.workbench.jobs import write_windows

CLASSES = ["walk", "fall", "run"]
RANGES = {"walk": (0.3, 0.6), "fall": (0.0, 0.02)}


def test_numbers_and_pairs_are_ranges_and_anything_else_is_none():
    assert ranges_of({"walk": 0.3, "fall": [0, 0.02]}) == {"walk": (0.3, 0.3), "fall": (0, 0.02)}
    for other in (
        "auto",
        None,
        0.3,
        [0.3, 0.7],
        {"walk": "often"},
        {"walk": [0.1, 0.2, 0.3]},
        {"walk": 1.5},
        {"walk": (0.6, 0.3)},
    ):
        assert ranges_of(other) == {}


def test_rows_of_a_class_without_labels_may_be_predicted_as_another():
    with pytest.warns(UserWarning, match="has 'fall', but no row has this label, so it is left out. Correct the name"):
        found = prior_of_labeled({"walk": 0.3, "run": [0.2, 0.99], "fall": [0, 0.02]}, ["walk", "run", None])
    assert found == {"walk": (0.3, 0.32), "run": (0.2, 1.0)}


@pytest.mark.parametrize("given", ["auto", None, {"walk": 0.3}, {"walk": "often"}])
def test_other_priors_stay_as_they_are(given):
    assert prior_of_labeled(given, ["walk", "run"]) is given


def test_ranges_that_fit_the_classes_pass():
    assert check_ranges({"walk": [0.3, 0.6], "fall": [0, 0.02]}, CLASSES) == RANGES
    assert check_ranges({}, CLASSES) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jump": [0, 1]}, "There is no class 'jump'"),
        ({"walk": [0.6, 0.3]}, "'walk' must be at most as large as its second number"),
        ({"walk": [0, 0]}, "'walk' must be at most as large as its second number, which is above 0"),
        ({"walk": [-0.1, 0.3]}, "'walk' must be two numbers between 0 and 100 %"),
        ({"walk": 0.3}, "'walk' must be two numbers"),
        ({"walk": [True, 1]}, "'walk' must be two numbers"),
        ({"walk": [0.6, 1], "run": [0.4, 1]}, "smallest shares sum to 100 % or more; lower some"),
        ({"walk": [0, 0.3], "run": [0, 0.3], "fall": [0, 0.3]}, "largest shares sum to less than 100 %; raise some"),
    ],
)
def test_each_mistake_says_what_to_do(given, message):
    with pytest.raises(ValueError, match=message):
        check_ranges(given, CLASSES)


def check_only_the_prior_differs(text, changed):
    before, after = tomllib.loads(text), tomllib.loads(changed)
    found = after.get("model", {}).pop("class_prior", {})
    before.get("model", {}).pop("class_prior", None)
    assert after == {"model": {}} | before
    return found


@pytest.mark.parametrize(
    "text",
    [
        '[data]\npath = "x.csv"',
        '[data]\npath = "x.csv"\n[model]\nn_stages = 4\n',
        '[data]\npath = "x.csv"\n\n[model]   # all optional\nclass_prior = { walk = 0.5 }\nn_stages = 4\n[views.a]\n',
        f'[model]\n{SHARES_HINT}\n[data]\npath = "x.csv"\n',
    ],
)
def test_the_project_file_has_the_ranges_and_nothing_else_changes(text):
    changed = with_ranges(text, RANGES)
    assert ranges_of(check_only_the_prior_differs(text, changed)) == RANGES
    assert changed.count("class_prior") == 1
    assert check_only_the_prior_differs(text, with_ranges(changed, {})) == {}
    rejects(check_only_the_prior_differs, text, changed.replace("x.csv", "y.csv"))


def test_a_file_that_cannot_be_changed_line_by_line_says_what_to_write():
    with pytest.raises((ProjectError, tomllib.TOMLDecodeError), match=r"class_prior"):
        with_ranges("[model]\n[model.class_prior]\nwalk = 0.5\n", RANGES)


def test_a_project_learns_within_the_ranges_of_its_file(tmp_path):
    write_windows(tmp_path, share_labeled=0.1)
    file = tmp_path / "cmvmed.toml"
    file.write_text(init(tmp_path / "windows.csv", file).text)
    free = Project.load(file).train()
    name = free.model.classes_[0]
    bound = 0.5 * float(free.model.class_prior_[0])
    write_ranges(file, {name: (0.0, round(bound, 6))})
    model = Project.load(file).train().model
    assert model.class_prior_[0] <= bound + 1e-6 < free.model.class_prior_[0]
