"""Fixtures of tests in several folders."""

import pytest
import sklearn

from tests.array_libraries import LIBRARIES


@pytest.fixture
def array_api_dispatch(monkeypatch):
    """Scikit-learn's setting, which asks for a variable of scipy too."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(params=LIBRARIES)
def xp(request):
    """An array library; the strict one on a device whose arrays cannot be mixed with others."""
    return pytest.importorskip(request.param)
