"""scikit-learn's own checks, all of them, on every baseline."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cmvmed.estimators.corls import CoRLS
from cmvmed.estimators.mvmed import MVMED
from cmvmed.estimators.svm2k import SVM2K

MARKER_COLLISION = (
    "The check fits y of -1 and +1, where -1 means 'unlabeled' for a semi-supervised classifier. That is one labeled "
    "class, which fit refuses with an explanation instead of losing a class in silence."
)


def expected_failures(estimator):
    return {"check_classifiers_classes": MARKER_COLLISION}


@parametrize_with_checks([SVM2K(), MVMED(), CoRLS()], expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        SVM2K(kernel="linear", epsilon=0.1, transductive=True),
        MVMED(kernel="cosine", scaling=None, c=100.0),
        CoRLS(form="svm"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check_of_other_settings(estimator, check):
    check(estimator)
