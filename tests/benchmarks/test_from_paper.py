"""From the paper to the default: the chain begins with the printed algorithm, passes CMVMED.paper() and ends at CMVMED()."""

import numpy as np
import pytest

from benchmarks.from_paper import STEPS, settings_of, table
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning


def number_of(words):
    (number,) = [k for k, step in enumerate(STEPS) if words in step.name]
    return number


def test_the_chain_ends_at_the_default():
    parameters, tuning = settings_of(len(STEPS) - 1)
    assert STEPS[-1].name.endswith("= CMVMED()")
    assert parameters == CMVMED().get_params()
    assert tuning == Tuning()


def test_the_chain_passes_the_papers_settings():
    parameters, tuning = settings_of(number_of("= CMVMED.paper()"))
    assert parameters == CMVMED.paper().get_params()
    assert tuning.clip == Tuning().clip


def test_the_chain_begins_with_the_printed_algorithm():
    parameters, _ = settings_of(0)
    assert parameters == CMVMED.paper(algorithm="printed", scaling=None).get_params()
    assert STEPS[0].origin == "paper"


@pytest.mark.parametrize("number", range(1, len(STEPS)))
def test_every_step_changes_something(number):
    assert settings_of(number) != settings_of(number - 1)


def test_every_parameter_of_the_default_that_differs_from_the_paper_is_a_step():
    paper, default = CMVMED.paper().get_params(), CMVMED().get_params()
    first = number_of("= CMVMED.paper()") + 1
    changed = {name for step in STEPS[first:] for name in step.parameters}
    assert changed == {name for name in default if default[name] != paper[name]}


def test_table_by_hand():
    steps = np.linspace(0.5, 0.8, len(STEPS))
    text = table({"webkb": np.array([steps, steps + 0.1]), "ads": np.array([steps, steps])})
    lines = text.splitlines()
    assert lines[0] == "| ingredient | whose | webkb, 15 labels | ads, 50 labels | mean |"
    assert len(lines) == 2 + len(STEPS)
    assert lines[2].endswith("| 55.0 ± 7.1 | 50.0 ± 0.0 | 52.5 |")
    assert lines[-1].endswith("| 85.0 ± 7.1 | 80.0 ± 0.0 | 82.5 (+2.0) |")
