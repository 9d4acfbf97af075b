"""Packaging agrees with itself: recipe for conda, extras, workflows, issue forms."""

import re
import tomllib
from pathlib import Path

import pytest

import cmvmed

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
EXTRAS = set(PROJECT["optional-dependencies"]) - {"all", "docs", "test", "suite"}  # those for users
IN_FORMS = {"markdown": "value", "textarea": "label", "input": "label", "dropdown": "label", "checkboxes": "label"}


def test_the_recipe_is_that_of_the_package():
    run = [need for need in RECIPE["requirements"]["run"] if not need.startswith("python ")]
    assert [need.replace(" ", "") for need in run] == PROJECT["dependencies"]
    assert RECIPE["context"] == {
        "version": cmvmed.__version__,
        "python_min": PROJECT["requires-python"].removeprefix(">="),
    }
    assert RECIPE["build"]["python"]["entry_points"] == [f"cmvmed = {PROJECT['scripts']['cmvmed']}"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


def test_every_extra_is_on_the_page_of_the_installation():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert all(f"\n| `{name}` | " in page for name in EXTRAS)


def test_all_leaves_out_what_the_page_says():
    names = re.search(r"cmvmed\[(.*)\]", PROJECT["optional-dependencies"]["all"][0])[1].split(",")
    left_out = EXTRAS - set(names)
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"`all` leaves out (.*?)\.\n\n", page, flags=re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == left_out
    tested = PROJECT["optional-dependencies"]["test"][0]
    assert all(name in tested for name in left_out), "the tests need every extra"


def test_the_lowest_versions_on_the_page_are_those_of_the_project():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    (lowest,) = [need.partition(">=")[2] for need in PROJECT["dependencies"] if need.startswith("scikit-learn>=")]
    assert f"cmvmed needs Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in page
    assert f"scikit-learn must be {lowest} or newer" in page


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_a_workflow_runs_what_exists_with_pinned_actions(path):
    text = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert all("permissions" in job for job in jobs.values())
    commands = [step["run"] for step in steps if "run" in step]
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {command.split()[1] for command in commands if command.startswith("make ")} <= targets
    assert set(re.findall(r"\.\[(\w+)\]", text)) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", FORMS, ids=[path.stem for path in FORMS])
def test_an_issue_form_has_the_fields_that_github_asks_for(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "body", "labels", "title"}
    assert all(IN_FORMS[part["type"]] in part["attributes"] for part in form["body"])
    fields = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert fields
    assert len(fields) == len(set(fields))
