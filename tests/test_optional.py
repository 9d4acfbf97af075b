"""Import of optional packages."""

import math
import sys

import pytest

from cmvmed._optional import import_optional


def test_an_installed_package_is_returned():
    assert import_optional("math", "audio", "A test") is math


@pytest.mark.parametrize(
    ("extra", "command"), [("audio", r"pip install 'cmvmed\[audio\]'"), (None, "pip install librosa")]
)
def test_the_error_has_the_purpose_and_the_command(monkeypatch, extra, command):
    monkeypatch.setitem(sys.modules, "librosa", None)
    with pytest.raises(ImportError, match=rf"MFCC needs librosa. Install it with: {command}$"):
        import_optional("librosa", extra, "MFCC")


def test_the_error_names_the_package_of_a_submodule():
    with pytest.raises(ImportError, match=r"needs no_such_package\. Install it with: pip install no_such_package"):
        import_optional("no_such_package.part", None, "A test")
