"""CMVMED.paper(): the settings of the paper and no others, and the algorithm as it is printed."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cmvmed import CMVMED

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
OF_PAPER = {
    "kernel": "rbf",
    "bias_variance": 0.0,
    "consensus_weight": 1.0,
    "temperature": 1.0,
    "class_prior": None,
    "view_weights": "uniform",
    "members": None,
    "max_iter": 100,
    "algorithm": "bohning",
    "approximation": "exact",
}


def test_the_settings_are_those_of_the_paper_and_else_the_defaults():
    assert CMVMED.paper().get_params() == CMVMED().get_params() | OF_PAPER


def test_the_printed_algorithm_has_one_sweep_per_stage():
    printed = {"algorithm": "printed", "max_iter": 1}
    assert CMVMED.paper(algorithm="printed").get_params() == CMVMED().get_params() | OF_PAPER | printed


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact", "newton"])
def test_other_algorithms_change_nothing_else(algorithm):
    expected = CMVMED().get_params() | OF_PAPER | {"algorithm": algorithm}
    assert CMVMED.paper(algorithm=algorithm).get_params() == expected


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "linear+rbf"},
        {"class_prior": "labels", "members": "consensus"},
        {"temperature": 0.5, "n_stages": 3},
        {"views": [3, 2], "C": 2.0, "unlabeled": None},
        {"algorithm": "printed", "max_iter": 7},
    ],
    ids=str,
)
def test_given_parameters_override_those_of_the_paper(given):
    assert CMVMED.paper(**given).get_params() == CMVMED().get_params() | OF_PAPER | given


def test_an_unknown_parameter_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'sigma'"):
        CMVMED.paper(sigma=1.0)
    with pytest.raises(TypeError, match="positional"):
        CMVMED.paper("printed")


def test_a_subclass_gives_its_own_kind():
    class Special(CMVMED):
        pass

    assert type(Special.paper()) is Special


@pytest.mark.parametrize("algorithm", ["bohning", "printed"])
def test_a_clone_is_the_same_model(algorithm, partly):
    model = CMVMED.paper(algorithm=algorithm, views=VIEWS).fit(partly.X, partly.y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(partly.X, partly.y).predict_proba(partly.X), model.predict_proba(partly.X))


def test_a_fit_has_nothing_beyond_the_paper(partly):
    model = CMVMED.paper(views=VIEWS).fit(partly.X, partly.y)
    np.testing.assert_array_equal(model.view_weights_, [0.5, 0.5])
    assert model.members_["name"] == ["consensus"]
    assert model._model.temperature == model.temperature == 1.0
    assert model.consensus_weight_ == pytest.approx(1.0 - np.exp(-0.5 * model.n_stages))
    np.testing.assert_array_equal(model._model.score_offset, [0.0])
    with pytest.raises(ValueError, match="held out no labels"):
        model.accuracy_estimate()


def check_one_sweep_per_stage(model):
    np.testing.assert_array_equal(model.history_["stage"], np.arange(model.n_stages + 1))
    assert model.n_iter_ == model.n_stages + 1
    assert model.converged_


@pytest.mark.parametrize("problem", ["partly", "partly_three"])
def test_the_printed_algorithm_runs_one_sweep_per_stage_without_a_warning(problem, request):
    data = request.getfixturevalue(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The consensus has drifted away")
        model = CMVMED.paper(algorithm="printed", views=VIEWS).fit(data.X, data.y)
    check_one_sweep_per_stage(model)


def test_the_check_of_sweeps_can_fail(partly):
    """The complete algorithm needs more sweeps, and warns if it has only one per stage."""
    model = CMVMED.paper(views=VIEWS).fit(partly.X, partly.y)
    with pytest.raises(AssertionError):
        check_one_sweep_per_stage(model)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=1"):
        model.set_params(max_iter=1, tol=0.0).fit(partly.X, partly.y)
    with pytest.raises(AssertionError):
        check_one_sweep_per_stage(model)


def test_views_of_the_printed_algorithm_do_not_depend_on_each_other(partly):
    """The printed update has no term of the consensus: another second view leaves the scores of the first."""
    model = CMVMED.paper(algorithm="printed", views=VIEWS, gamma=0.02, scaling=None)
    other = np.hstack([partly.a, partly.b[::-1]])

    def scores_of_first(model, X):
        return clone(model).fit(X, partly.y).decision_function_by_view(X)["a"]

    np.testing.assert_allclose(scores_of_first(model, other), scores_of_first(model, partly.X), atol=1e-10)
    complete = clone(model).set_params(algorithm="bohning", max_iter=100)
    assert np.abs(scores_of_first(complete, other) - scores_of_first(complete, partly.X)).max() > 1e-3
