"""Tuned numbers: documented, used, and changed within a context only."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest

import cmvmed
from cmvmed import CMVMED
from cmvmed.auto import tuning as tuning_module
from cmvmed.auto.tuning import Tuning, current_tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian
from tests.core.factories import rejects

PACKAGE = Path(cmvmed.__file__).parent
MAX_NUMBERS = 39


def check_every_field_has_a_docstring(code):
    """A string that says more than the name stands directly below each annotated field of the class Tuning."""
    (body,) = (node.body for node in ast.parse(code).body if isinstance(node, ast.ClassDef) and node.name == "Tuning")
    positions = [i for i, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
    assert len(positions) == len(fields(Tuning))
    for i in positions:
        following = body[i + 1] if i + 1 < len(body) else None
        documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        assert documented, ast.unparse(body[i])
        assert len(str(following.value.value).split()) >= 3, ast.unparse(body[i])


def test_every_field_has_a_docstring():
    code = inspect.getsource(tuning_module)
    check_every_field_has_a_docstring(code)
    docstring = '    """Stages of a fit without a fold\'s labels'
    (line,) = (line for line in code.splitlines() if line.startswith(docstring))
    rejects(check_every_field_has_a_docstring, code.replace(line + "\n", ""))


def test_every_field_is_used():
    """Each is read from an object named ``tuning`` outside the module that defines it."""
    used = set()
    for path in PACKAGE.rglob("*.py"):
        if path != Path(tuning_module.__file__):
            used |= set(re.findall(r"\btuning\.(\w+)", path.read_text(encoding="utf-8")))
    assert {field.name for field in fields(Tuning)} - used == set()


def test_there_are_not_more_numbers_than_before():
    """Lower the bound with every number that goes."""
    assert len(fields(Tuning)) <= MAX_NUMBERS


def test_numbers_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        Tuning().clip = 3.0


@pytest.fixture(scope="module")
def gaussian():
    return make_multiview_gaussian(120, separation=(1.1, 0.8), labeled=12, random_state=0)


def test_context_changes_predictions_and_restores_them(gaussian):
    def predictions():
        return CMVMED(views=gaussian.views).fit(gaussian.data, gaussian.y).predict_proba(gaussian.data)

    before = predictions()
    for changed in ({"clip": 0.5}, {"prior_variance_binary": 0.5}, {"kernel_ridge": 3.0}):
        with tuning_context(replace(Tuning(), **changed)):
            within = predictions()
        assert np.abs(within - before).max() > 1e-3, changed
    np.testing.assert_array_equal(predictions(), before)


def test_contexts_may_be_nested_and_end_with_an_error():
    inner, outer = replace(Tuning(), clip=1.0), replace(Tuning(), clip=4.0)
    with tuning_context(outer):
        with tuning_context(inner):
            assert current_tuning() is inner
        assert current_tuning() is outer
        with pytest.raises(ZeroDivisionError), tuning_context(inner):
            raise ZeroDivisionError
        assert current_tuning() is outer
    assert current_tuning() == Tuning()
