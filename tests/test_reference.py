"""Every public name is on a page of the reference, is documented, and has an example, which test_docs.py runs."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "reference"
MODULES = ["", ".datasets", ".features", ".labeling", ".model_selection", ".plots", ".recordings", ".workbench"]
PUBLIC = {(f"cmvmed{m}", name) for m in MODULES for name in importlib.import_module(f"cmvmed{m}").__all__}
ALSO_ELSEWHERE = {("cmvmed", "SemiSupervisedKFold"), ("cmvmed", "SemiSupervisedShuffleSplit")}  # of model_selection
INHERITED = ("sklearn.", "builtins")


def listed(text):
    """(module, name) of the entries of a page's autosummary tables."""
    module = re.search(r"^\.\. currentmodule:: (\S+)", text, flags=re.MULTILINE)
    return {(module[1], name) for name in re.findall(r"^   (\w+)$", text, flags=re.MULTILINE)} if module else set()


def names_on_pages():
    return set().union(*(listed(page.read_text(encoding="utf-8")) for page in PAGES.glob("*.rst")))


def public_object(module, name):
    return getattr(importlib.import_module(module), name)


def undocumented(thing):
    """Names of the public methods and properties without a docstring, of a class."""
    methods = [] if not inspect.isclass(thing) else inspect.getmembers(thing, _is_documentable)
    return [name for name, member in methods if not name.startswith("_") and not inspect.getdoc(member)]


def _is_documentable(member):
    function = member.fget if isinstance(member, property) else member
    return inspect.isfunction(function) and not function.__module__.startswith(INHERITED)


def test_the_reference_lists_every_public_name_and_no_other():
    assert names_on_pages() == PUBLIC - ALSO_ELSEWHERE


def test_a_name_that_is_not_listed_is_noticed():
    """Broken twin: a page without one of its names."""
    page = (PAGES / "plots.rst").read_text(encoding="utf-8")
    assert listed(page) - listed(page.replace("   RowDisplay\n", "")) == {("cmvmed.plots", "RowDisplay")}


@pytest.mark.parametrize(("module", "name"), sorted(PUBLIC))
def test_a_public_name_is_documented_with_an_example(module, name):
    text = inspect.getdoc(public_object(module, name))
    assert re.search(r"^Examples\n--------\n.*?^>>> ", text, flags=re.MULTILINE | re.DOTALL), "no section Examples"
    assert "+SKIP" not in text
    assert undocumented(public_object(module, name)) == []


def test_a_method_without_a_docstring_is_noticed():
    class Broken:
        def method(self): ...

    assert undocumented(Broken) == ["method"]
