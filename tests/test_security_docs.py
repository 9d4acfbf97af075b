"""docs/security.md: each test that it names is there; docs/robustness.md: each promise has a campaign."""

import re
from pathlib import Path

import pytest

from benchmarks.faults.campaign import NAMES

REPOSITORY = Path(__file__).parent.parent
PAGE = REPOSITORY / "docs" / "security.md"
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda part: part)
def test_the_tests_of_the_page_exist(file, test):
    code = (REPOSITORY / file).read_text(encoding="utf-8")
    assert test == "" or re.search(rf"^\s*def {test}\(", code, re.MULTILINE)


def test_each_threat_has_a_test():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    threats = [row for row in rows if not row.startswith(("| threat", "| ---"))]
    assert len(threats) > 25
    assert all("`tests/" in row for row in threats)


def test_each_promise_names_its_campaigns():
    page = (REPOSITORY / "docs" / "robustness.md").read_text(encoding="utf-8")
    promises = re.findall(r"^- \*\*.+?\*\*(?: \((.+?)\))?", page, re.MULTILINE)
    named = [re.findall(r"`(\w+)`", campaigns) for campaigns in promises]
    assert all(named)
    assert sorted(name for names in named for name in names) == sorted(NAMES)
