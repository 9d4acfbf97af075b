"""All checks of scikit-learn, on every estimator and on settings that take another path through the code."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cmvmed import CMVMED, MED

MARKER_COLLISION = (
    "The check fits y of -1 and +1, where -1 means 'unlabeled' for a semi-supervised classifier. That is one labeled "
    "class, which fit refuses with an explanation instead of losing a class in silence."
)


def expected_failures(estimator):
    return {"check_classifiers_classes": MARKER_COLLISION}


# Random data with few rows: some checks have a class of one row, or nothing to learn, which is warned of.
quiet = pytest.mark.filterwarnings(
    "ignore:Class .* has one labeled row", "ignore:Class .* has labeled rows of one group"
)


@quiet
@parametrize_with_checks([MED(), CMVMED()], expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@quiet
@pytest.mark.slow
@parametrize_with_checks(
    [
        MED(kernel="cosine", scaling=None),
        CMVMED(algorithm="jaakkola"),
        CMVMED(algorithm="newton"),
        CMVMED.paper(algorithm="printed", kernel="linear+rbf"),
        CMVMED(kernel="linear", scaling="unit", class_prior="labels", view_weights="uniform", n_jobs=2),
        CMVMED(approximation=20),
        CMVMED(kernel="cosine", class_prior=None, n_stages=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check_of_other_settings(estimator, check):
    check(estimator)
