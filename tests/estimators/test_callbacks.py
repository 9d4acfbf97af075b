"""Progress through the callbacks of scikit-learn, and views that are set up in parallel."""

import re

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmvmed import CMVMED, SemiSupervisedKFold
from cmvmed.model_selection import labeled_scorer
from cmvmed.numerics import threads as threads_module

WIDTHS = [3, 2]


class Recorder:
    """A callback that records its calls, and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.events, self.models, self.ended = [], [], 0

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(f"end {context.task_name}")
        self.models.append((context.task_name, fitted_estimator, X, y))
        self.ended += context.task_name == "stage"
        return context.task_name == "stage" and self.ended == self.stop_at

    def stages(self):
        return [model for task, model, _, _ in self.models if task == "stage"]


def recorded(partly, stop_at=None, **settings):
    """Fit with a recorder; by default the consensus alone, with the class prior of the labels."""
    recorder = Recorder(stop_at)
    consensus = {"class_prior": "labels", "members": None}
    settings = {"views": WIDTHS, "n_stages": 4, **consensus, **settings}
    model = CMVMED(**settings).set_callbacks(recorder).fit(partly.X, partly.y)
    return model, recorder


def test_a_callback_is_called_for_every_stage(partly):
    _, recorder = recorded(partly)
    stages = ["begin stage", "end stage"] * 4
    assert recorder.events == ["setup", "begin fit", *stages, "end fit", "teardown"]


def test_a_callback_gets_the_data_and_a_model_that_predicts(partly):
    model, recorder = recorded(partly)
    for task, fitted, X, y in recorder.models:
        assert task in ("stage", "fit")
        assert X is partly.X
        assert y is partly.y
        assert fitted is not model
        assert fitted.predict(partly.X).shape == (40,)
        np.testing.assert_allclose(fitted.predict_proba(partly.X).sum(axis=1), 1.0, atol=1e-12)
        assert set(fitted.predict_proba_by_view(partly.X)) == {"view0", "view1"}


def test_the_model_of_a_stage_is_that_of_a_fit_which_ends_there(partly):
    """Stage s of S has the temperature T^(s/S), so a fit of s stages that ends at that temperature is the same."""
    model, recorder = recorded(partly, temperature=0.25)
    for s, stage in enumerate(recorder.stages(), start=1):
        shorter = clone(model).set_params(n_stages=s, temperature=0.25 ** (s / 4)).fit(partly.X, partly.y)
        np.testing.assert_allclose(stage.predict_proba(partly.X), shorter.predict_proba(partly.X), atol=1e-8)
        np.testing.assert_allclose(stage.label_distributions_, shorter.label_distributions_, atol=1e-8)
        assert stage.n_iter_ == shorter.n_iter_


def test_the_model_of_a_stage_cannot_compare_new_rows(partly):
    model, recorder = recorded(partly)
    stage = recorder.stages()[-1]
    for method in (stage.sensor_health, stage.novelty):
        with pytest.raises(ValueError, match=r"one stage of a fit .* use the model at the end of the fit"):
            method(partly.X)
    assert set(model.novelty(partly.X)) == {"view0", "view1"}


def test_the_last_stage_is_the_fitted_model(partly):
    model, recorder = recorded(partly)
    for fitted in (recorder.stages()[-1], recorder.models[-1][1]):
        np.testing.assert_array_equal(fitted.predict_proba(partly.X), model.predict_proba(partly.X))


@pytest.mark.parametrize("stop_at", [1, 3])
def test_a_callback_can_stop_the_fit(stop_at, partly):
    model, recorder = recorded(partly, stop_at)
    assert len(recorder.stages()) == stop_at
    assert model.history_["stage"].max() == stop_at
    np.testing.assert_array_equal(model.predict_proba(partly.X), recorder.stages()[-1].predict_proba(partly.X))
    assert recorder.events[-2:] == ["end fit", "teardown"]


def test_no_stage_begins_after_a_stop(partly):
    _, recorder = recorded(partly, stop_at=2)
    assert recorder.events.count("begin stage") == 2


def test_fits_without_held_out_labels_are_not_reported(partly):
    _, recorder = recorded(partly, members="auto", class_prior="auto")
    assert recorder.events == ["setup", "begin fit", *["begin stage", "end stage"] * 4, "end fit", "teardown"]


@pytest.mark.parametrize("settings", [{"class_prior": "auto"}, {"consensus_weight": 0.0}])
def test_every_stage_that_begins_also_ends(settings, partly):
    _, recorder = recorded(partly, **settings)
    assert recorder.events.count("begin stage") == recorder.events.count("end stage")


def test_a_failed_fit_tears_the_callback_down(partly, monkeypatch):
    def refuse(*arguments, **settings):
        raise ArithmeticError("no calibration")

    monkeypatch.setattr("cmvmed.estimators.cmvmed.fit_pool", refuse)
    recorder = Recorder()
    model = CMVMED(views=WIDTHS, n_stages=1).set_callbacks(recorder)
    with pytest.raises(ArithmeticError, match="no calibration"):
        model.fit(partly.X, partly.y)
    assert recorder.events == ["setup", "begin fit", "begin stage", "end stage", "teardown"]


def test_a_fit_that_fails_before_its_first_stage_leaves_no_callback_set_up(partly):
    recorder = Recorder()
    model = CMVMED(views=WIDTHS, class_prior=7.0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="class_prior"):
        model.fit(partly.X, partly.y)
    assert recorder.events.count("setup") == recorder.events.count("teardown")
    assert "begin stage" not in recorder.events


def test_callbacks_do_not_change_the_model(partly):
    model, _ = recorded(partly)
    silent = clone(model).set_callbacks().fit(partly.X, partly.y)
    np.testing.assert_array_equal(silent.predict_proba(partly.X), model.predict_proba(partly.X))


def test_the_progress_bar_of_scikit_learn(partly, capsys):
    CMVMED(views=WIDTHS, n_stages=3, class_prior="labels").set_callbacks(ProgressBar()).fit(partly.X, partly.y)
    assert re.search(r"CMVMED - fit .*100%", capsys.readouterr().out)


def test_the_progress_bar_over_a_search(partly, capsys):
    search = GridSearchCV(CMVMED(views=WIDTHS, n_stages=2), {"C": [0.5, 2.0]}, cv=SemiSupervisedKFold(2))
    search.set_callbacks(ProgressBar()).fit(partly.X, partly.y)
    assert "GridSearchCV" in capsys.readouterr().out


def test_scores_can_be_followed_over_the_stages(partly):
    monitor = ScoringMonitor(scoring={"accuracy": labeled_scorer("accuracy")})
    CMVMED(views=WIDTHS, n_stages=3, class_prior="labels").set_callbacks(monitor).fit(partly.X, partly.y)
    log = monitor.get_logs().data_as_pandas
    assert len(log) == 4  # three stages and the whole fit
    assert log["accuracy"].between(0.5, 1.0).all()


def test_a_fit_prints_nothing(partly, capsys):
    CMVMED(views=WIDTHS, n_stages=2).fit(partly.X, partly.y).predict(partly.X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("settings", [{}, {"algorithm": "jaakkola"}, {"algorithm": "newton"}])
def test_threads_change_nothing(settings, n_jobs, partly_three):
    model = CMVMED(views=WIDTHS, n_stages=2, **settings)
    alone = clone(model).fit(partly_three.X, partly_three.y)
    together = clone(model).set_params(n_jobs=n_jobs).fit(partly_three.X, partly_three.y)
    np.testing.assert_allclose(together.predict_proba(partly_three.X), alone.predict_proba(partly_three.X), atol=1e-12)
    assert together.n_iter_ == alone.n_iter_


# two views are read and set up; five folds of the labels are fitted
@pytest.mark.parametrize(
    ("settings", "threads"), [({}, [2, 2, 5]), ({"n_jobs": 1}, []), ({"approximation": "exact"}, [])]
)
def test_low_rank_views_share_the_threads_of_the_linear_algebra(settings, threads, partly_three, monkeypatch):
    used, inner = [], threads_module._map_in_threads

    def recorded(workers, function, items):
        used.append(min(workers, len(items)))
        return inner(workers, function, items)

    model = CMVMED(views=WIDTHS, n_stages=2, approximation=20, n_jobs=1)
    alone = clone(model).fit(partly_three.X, partly_three.y).predict_proba(partly_three.X)
    monkeypatch.setattr("cmvmed.numerics.threads.blas_threads", lambda: 5)
    monkeypatch.setattr("cmvmed.numerics.threads.cpu_count", lambda: 5)
    monkeypatch.setattr("cmvmed.numerics.threads._map_in_threads", recorded)
    together = model.set_params(**{"n_jobs": None, **settings}).fit(partly_three.X, partly_three.y)
    assert used == threads
    if model.approximation == "nystroem":
        np.testing.assert_allclose(together.predict_proba(partly_three.X), alone, atol=1e-12)


def test_any_negative_number_of_threads(partly):
    assert CMVMED(views=WIDTHS, n_stages=1, n_jobs=-3).fit(partly.X, partly.y).n_views_ == 2


def test_threads_may_be_chosen_from_outside(partly):
    model = CMVMED(views=WIDTHS, n_stages=2)
    alone = clone(model).fit(partly.X, partly.y).predict_proba(partly.X)
    with parallel_config("threading", n_jobs=2):
        together = clone(model).fit(partly.X, partly.y).predict_proba(partly.X)
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_an_error_in_a_view_passes_through_threads(partly):
    def refuse(A, B):
        raise RuntimeError("no such sensor")

    with pytest.raises(RuntimeError, match="no such sensor"):
        CMVMED(views=WIDTHS, kernel=["rbf", refuse], n_jobs=2).fit(partly.X, partly.y)


def test_callbacks_reach_a_step_of_a_pipeline(partly):
    recorder = Recorder()
    model = CMVMED(views=WIDTHS, n_stages=2, class_prior="labels").set_callbacks(recorder)
    make_pipeline(StandardScaler(), model).fit(partly.X, partly.y)
    assert recorder.events.count("end stage") == 2
