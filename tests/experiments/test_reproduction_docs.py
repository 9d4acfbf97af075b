"""The example of docs/reproduction.md runs, its numbers of rows are those of the tasks, its options exist."""

import re
from pathlib import Path

import pytest

from cmvmed.datasets import make_multiview_gaussian
from experiments.commands import main
from experiments.experiment import PROTOCOLS, QUICK_SPLITS, TABLE_1
from experiments.methods import CMV_MED_PAPER, CMV_MED_PRINTED, GROUPS, METHODS, MV_MED, SVM_2K
from experiments.tasks import TASKS, Task, draw_split

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_the_example(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    exec(compile(block, "docs/reproduction.md", "exec"), {})
    assert capsys.readouterr().out.startswith("done 0.")


@pytest.mark.parametrize("cell", TABLE_1.cells, ids=lambda cell: cell.dataset)
def test_the_table_of_data_sets(cell):
    line = next(line for line in DOCUMENT.splitlines() if f"| `{cell.dataset}` |" in line)
    assert f"| {cell.n_labeled} / {TASKS[cell.dataset].n_train} / " in line


def test_options_and_numbers():
    options = {name for parameter in main.commands["table1"].params for name in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)", DOCUMENT)) <= options
    assert f"{QUICK_SPLITS['table1']} splits, default parameters" in DOCUMENT
    assert f"{TABLE_1.n_splits} splits, also tuned by 5-fold cross-validation" in DOCUMENT


def test_protocols_and_groups():
    assert all(f"*{name}*:" in DOCUMENT for name in PROTOCOLS)
    assert "`paper`, `rbf` and `linear+rbf`" in DOCUMENT
    assert set(GROUPS) == {"paper", "rbf", "linear+rbf"}


def documented_grids():
    """Values by parameter and by method, from the table of grids."""
    lines = DOCUMENT.split("| parameter | values, the default first | methods |")[1].split("\n\n")[0].splitlines()[2:]
    grids, parameter = {}, ""
    for line in lines:
        named, values, methods = (cell.strip() for cell in line.strip("|").split("|"))
        parameter = named.split("`")[1] if "`" in named else "" if named else parameter
        pairs = [(parameter, values)] if parameter else re.findall(r"`(\w+)`: ([^;]+)", values)
        for name, text in pairs:
            for method in methods.split(", "):
                grids[method, name] = text.strip()
    return grids


OF_PAPER = [name for name in METHODS if name in (SVM_2K, MV_MED, CMV_MED_PRINTED, CMV_MED_PAPER)]


@pytest.mark.parametrize("name", OF_PAPER)
def test_the_table_of_grids(name):
    data = make_multiview_gaussian(120, random_state=0)
    grid = METHODS[name].build(draw_split(Task("small", lambda: data, 16, 60), 0)).grid
    documented = documented_grids()
    assert {(name, parameter): ", ".join(map(str, values)) for parameter, values in grid.items()} == {
        key: values for key, values in documented.items() if key[0] == name
    }
