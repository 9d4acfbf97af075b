"""What the documentation shows is what happens: doctests of all modules, Python blocks of all pages."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import cmvmed
import experiments.datasets

ROOT = Path(__file__).parents[2]
SCRIPT = "cmvmed.__main__"  # importing it runs the command line
FOUND = sorted(module.name for module in pkgutil.walk_packages(cmvmed.__path__, "cmvmed."))
MODULES = ["cmvmed", *(name for name in FOUND if name != SCRIPT)]
LOADERS = [module.name for module in pkgutil.walk_packages(experiments.datasets.__path__, "experiments.datasets.")]
# Pages whose code needs files, run with them by a test of their own.
TESTED_ELSEWHERE = {
    "datasets.md": ROOT / "tests" / "experiments" / "datasets" / "test_datasets_docs.py",
    "index.md": ROOT / "tests" / "benchmarks" / "test_walkthrough.py",
    "features.md": ROOT / "tests" / "features" / "test_features_docs.py",
    "recordings.md": ROOT / "tests" / "recordings" / "test_recordings_docs.py",
    "model_report.md": ROOT / "tests" / "workbench" / "report" / "test_model_report_docs.py",
    "workbench.md": ROOT / "tests" / "workbench" / "test_workbench_docs.py",
}
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in TESTED_ELSEWHERE)
SLOW_PAGES = ("model_selection.md",)
NOT_RUN = "<!-- no-run -->"
BLOCK = re.compile(r"^(?P<before>[^\n]*)\n```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def python_blocks(text):
    """(number of the block's first line, code) of every Python block that is not marked as not to be run."""
    return [
        (text[: match.start("code")].count("\n"), match["code"])
        for match in BLOCK.finditer("\n" + text)
        if match["before"].strip() != NOT_RUN
    ]


def run_page(page):
    """Execute a page's blocks in order in one namespace; a failure points to the line of the page."""
    namespace = {"__name__": "__page__"}
    blocks = python_blocks(page.read_text(encoding="utf-8"))
    for first_line, code in blocks:
        exec(compile("\n" * first_line + code, str(page), "exec"), namespace)
    return len(blocks)


def imported(name):
    """The module; a test that needs an extra which is not installed is skipped."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        outside = (error.name or "cmvmed").split(".")[0] != "cmvmed"
        return pytest.skip(f"{name} needs {error.name}") if outside else pytest.fail(str(error))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A working directory of its own and pictures without a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize("name", [*MODULES, *LOADERS])
def test_the_examples_of_a_module(name):
    result = doctest.testmod(imported(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=pytest.mark.slow if page.name in SLOW_PAGES else []) for page in PAGES],
)
def test_the_python_blocks_of_a_page(page):
    text = page.read_text(encoding="utf-8")
    assert run_page(page) == text.count("\n```python") - text.count(f"{NOT_RUN}\n```python")


@pytest.mark.parametrize("page", TESTED_ELSEWHERE)
def test_the_other_pages_are_run_by_their_own_tests(page):
    assert f"docs/{page}" in TESTED_ELSEWHERE[page].read_text(encoding="utf-8")


PAGE = """# A page

```python
x = 1
```

<!-- no-run -->
```python
raise RuntimeError("not to be run")
```

```bash
rm nothing
```

```python
assert x == 1, "blocks share their names"
y = 1 / 0
```
"""


def test_a_broken_block_fails_at_its_line(tmp_path):
    """Broken twin of the pages' test."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno + 1 == PAGE.splitlines().index("y = 1 / 0") + 1


def test_blocks_are_found_at_the_start_of_a_page_too():
    assert [code for _, code in python_blocks("```python\na\n```\ntext\n```python\nb\n```\n")] == ["a\n", "b\n"]
