"""FitSettings.read is the only code of a fit that reads the constructor parameters of CMVMED."""

import ast
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

import cmvmed.estimators
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.estimators._settings import FitSettings
from tests.core.factories import rejects

FOLDER = Path(cmvmed.estimators.__file__).parent
PRIVATE = sorted(path for path in FOLDER.glob("_*.py") if path.name not in ("__init__.py", "_settings.py"))
FIT_PATH = [FOLDER / name for name in ("cmvmed.py", "_fit_reports.py", "_attributes.py", "_lowering.py")]
PARAMETERS = set(CMVMED().get_params())
NOT_OF_A_FIT = ("__init__", "paper")  # methods that set parameters


def functions_in(code):
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def check_no_untyped_estimator(code):
    """No function takes an argument ``estimator`` that is annotated as Any, or not at all."""
    for function in functions_in(code):
        given = function.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            annotation = None if argument.annotation is None else ast.unparse(argument.annotation)
            assert argument.arg != "estimator" or annotation not in (None, "Any", "typing.Any", "object"), (
                f"{function.name} takes an estimator of any type"
            )


def methods_of_estimators(code):
    """Methods of the classes that are estimators, whose ``self`` has the parameters."""
    classes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ClassDef)]
    estimators = [node for node in classes if any("Classifier" in ast.unparse(base) for base in node.bases)]
    return {part.name for node in estimators for part in node.body if isinstance(part, ast.FunctionDef)}


def is_estimator(node, *, in_estimator):
    """Whether an expression is ``estimator``, ``….estimator`` or, in an estimator, ``self``."""
    match node:
        case ast.Name(id="self"):
            return in_estimator
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "estimator"
    return False


def parameters_read(code):
    """Parameters of CMVMED that the code reads from an estimator, with the functions that do."""
    found, methods = set(), methods_of_estimators(code)
    for function in functions_in(code):
        if function.name in NOT_OF_A_FIT:
            continue
        is_one = partial(is_estimator, in_estimator=function.name in methods)
        for node in ast.walk(function):
            match node:
                case ast.Attribute(value=value, attr=name) if name in PARAMETERS and is_one(value):
                    found.add((function.name, name))
                case ast.Call(func=ast.Name(id="getattr"), args=[value, *_]) if is_one(value):
                    found.add((function.name, "getattr"))
                case ast.Call(func=ast.Attribute(value=value, attr="get_params")) if is_one(value):
                    found.add((function.name, "get_params"))
    return found


def check_reads_no_parameter(code):
    assert parameters_read(code) == set()


def test_files_are_found():
    assert "fit" in methods_of_estimators((FOLDER / "cmvmed.py").read_text(encoding="utf-8"))
    assert {path.name for path in PRIVATE} >= {"_base.py", "_fit_reports.py", "_attributes.py", "_lowering.py"}


@pytest.mark.parametrize("path", PRIVATE, ids=lambda path: path.name)
def test_no_function_takes_an_estimator_of_any_type(path):
    check_no_untyped_estimator(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "code",
    [
        "def f(estimator: Any): ...",
        "def f(*, estimator: typing.Any = None): ...",
        "def f(estimator): ...",
        "class C:\n    def f(self, estimator: object): ...",
    ],
)
def test_an_estimator_of_any_type_is_rejected(code):
    rejects(check_no_untyped_estimator, code)
    check_no_untyped_estimator("def f(estimator: 'CMVMED', X: Any): ...")


@pytest.mark.parametrize("path", FIT_PATH, ids=lambda path: path.name)
def test_no_other_code_of_a_fit_reads_a_parameter(path):
    check_reads_no_parameter(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "code",
    [
        "class C(MultiViewClassifier):\n    def fit(self):\n        return self.n_stages",
        "class C:\n    def fit(self):\n        return self.estimator.tol",
        "def f(estimator: 'CMVMED'):\n    return estimator.kernel",
        "def f(estimator: 'CMVMED'):\n    return getattr(estimator, 'kernel')",
        "class C(MultiViewClassifier):\n    def fit(self):\n        return self.get_params()['tol']",
    ],
)
def test_code_that_reads_a_parameter_is_rejected(code):
    rejects(check_reads_no_parameter, code)


def test_settings_are_read():
    """The counterpart of the checks: the reader itself reads every parameter."""
    code = (
        (FOLDER / "_settings.py").read_text(encoding="utf-8").replace("e = estimator", "").replace("e.", "estimator.")
    )
    read = {name for _, name in parameters_read(code)}
    assert read - {"getattr"} == PARAMETERS


def test_each_parameter_is_a_setting():
    names = {field.name for field in fields(FitSettings)}
    by_view = {"kernel", "gamma", "scaling", "prior_variance", "C", "bias_variance"}
    assert PARAMETERS - by_view - {"unlabeled"} <= names  # ``unlabeled`` belongs to the input


def test_settings_have_the_tuned_numbers_in_force():
    assert FitSettings.read(CMVMED()).tuning == Tuning()
    other = Tuning(sample_rows=7)
    with tuning_context(other):
        assert FitSettings.read(CMVMED()).tuning is other


def test_later_changes_of_the_estimator_do_not_reach_the_settings():
    model = CMVMED(n_stages=3)
    settings = FitSettings.read(model)
    model.set_params(n_stages=5)
    assert settings.n_stages == 3
