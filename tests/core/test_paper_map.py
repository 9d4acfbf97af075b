"""The table of equations and steps in ``cmvmed.core`` names functions that exist, and none is missing."""

import re
from importlib import import_module

import pytest

from cmvmed import core

NAMES = re.findall(r"``(\w+)\.([\w.]+)``", core.__doc__.partition("====")[2].partition("The Gaussian kernel")[0])
PARTS = ["Eq. (1)", "Eq. (2)", "Eqs. (3), (4)", "Eq. (5)", "Eqs. (6), (7)"]
PARTS += ["Step 1", "Step 2(a)", "Step 2(b)", "Step 2(c)", "Step 3"]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_name_exists(module, name):
    found = import_module(f"cmvmed.core.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    assert found.__doc__


def test_all_equations_and_steps_of_the_paper_are_listed():
    lines = core.__doc__.splitlines()
    assert all(any(line.startswith(part) for line in lines) for part in PARTS)
