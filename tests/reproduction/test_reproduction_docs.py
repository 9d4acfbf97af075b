"""The example of docs/reproduction.md runs, its numbers of rows are those of the tasks, its options exist."""

import re
from pathlib import Path

import pytest

from cmvmed.cli.reproduce_command import command
from cmvmed.reproduction.experiment import QUICK_SPLITS, TABLE_1
from cmvmed.reproduction.tasks import TASKS

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
    options = {name for parameter in command.params for name in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)", DOCUMENT)) <= options
    assert f"{QUICK_SPLITS['table1']} splits, default parameters" in DOCUMENT
    assert f"{TABLE_1.n_splits} splits, also tuned by 5-fold cross-validation" in DOCUMENT
