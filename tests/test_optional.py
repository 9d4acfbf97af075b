"""Import of optional packages, and how to install an extra of cmvmed as it is installed."""

import json
import math
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from cmvmed import _optional
from cmvmed._optional import import_optional, install_command

ROOT = Path(__file__).parents[1]
NAMED_ALONE = re.compile(r"(?<!``)pip install '?cmvmed")  # looked up in an index; a docstring may name it in ``..``


@pytest.fixture
def installed(monkeypatch):
    """Sets what pip wrote about where cmvmed came from, outside of a checkout."""

    class Installed:
        def __init__(self, direct_url):
            self.text = None if direct_url is None else json.dumps(direct_url)

        def read_text(self, name):
            assert name == "direct_url.json"
            return self.text

    def install(direct_url):
        monkeypatch.setattr(_optional, "_checkout", lambda: None)
        monkeypatch.setattr(_optional, "_pip", lambda: "pip")
        monkeypatch.setattr(_optional, "distribution", lambda name: Installed(direct_url))

    return install


def test_an_installed_package_is_returned():
    assert import_optional("math", "audio", "A test") is math


@pytest.mark.parametrize("extra", ["audio", None])
def test_the_error_has_the_purpose_and_the_command(monkeypatch, extra):
    monkeypatch.setitem(sys.modules, "librosa", None)
    command = "pip install librosa" if extra is None else install_command(extra)
    with pytest.raises(ImportError, match=rf"MFCC needs librosa. Install it with: {re.escape(command)}$"):
        import_optional("librosa", extra, "MFCC")


def test_the_error_names_the_package_of_a_submodule():
    with pytest.raises(ImportError, match=r"needs no_such_package\. Install it with: pip install no_such_package"):
        import_optional("no_such_package.part", None, "A test")


def test_a_checkout_is_named_by_its_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    *_, option, requirement = shlex.split(install_command("audio,plot"))
    assert (option, requirement) == ("--editable", f"{ROOT}[audio,plot]")
    monkeypatch.chdir(ROOT)
    assert install_command("audio").endswith(" install --editable '.[audio]'")


@pytest.mark.parametrize(
    ("direct_url", "requirement"),
    [
        (None, "cmvmed[audio]"),
        ({"url": "file:///a/b", "dir_info": {}}, "cmvmed[audio] @ file:///a/b"),
        ({"url": "file:///a/b.whl", "archive_info": {}}, "cmvmed[audio] @ file:///a/b.whl"),
        ({"url": "https://a/b", "vcs_info": {"vcs": "git", "commit_id": "0"}}, "cmvmed[audio] @ git+https://a/b"),
    ],
)
def test_an_installation_is_named_by_where_it_came_from(installed, direct_url, requirement):
    installed(direct_url)
    assert shlex.split(install_command("audio")) == ["pip", "install", requirement]


def test_a_package_without_metadata_is_named_alone(installed, monkeypatch):
    def distribution(name):
        raise PackageNotFoundError(name)

    installed(None)
    monkeypatch.setattr(_optional, "distribution", distribution)
    assert install_command("audio") == "pip install 'cmvmed[audio]'"


@pytest.mark.parametrize(
    ("prefix", "active", "pip"), [("/venv", None, "/venv/bin/python -m pip"), ("/venv", "/venv", "pip"), ("/usr", None, "pip")]
)  # fmt: skip
def test_an_environment_that_is_not_active_is_named(monkeypatch, prefix, active, pip):
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    for value in filter(None, [active]):
        monkeypatch.setenv("VIRTUAL_ENV", value)
    assert install_command("audio").startswith(f"{pip} install ")


def test_no_page_or_message_installs_cmvmed_from_an_index():
    """There is no release; docs/installation.md says what holds after the first one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
    sources = [path for folder in ("src", "experiments") for path in (ROOT / folder).rglob("*.py")]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in [*pages, *sources]
        if path.name != "installation.md" and NAMED_ALONE.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
    assert NAMED_ALONE.search("pip install 'cmvmed[audio]'")
