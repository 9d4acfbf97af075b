"""The commands of the first guide and the lines of Python of README.md print what the pages show."""

from __future__ import annotations

import pytest

from benchmarks.provenance import RESULTS, ROOT, body
from benchmarks.walkthrough import commands, python_lines, transcript


def steady(text):
    """The lines without figures, which may differ between machines."""
    return [line for line in text.splitlines() if line.startswith("$") or not any(sign.isdigit() for sign in line)]


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path):
    text = transcript(tmp_path, commands())
    shown = body(RESULTS / "walkthrough.txt")
    assert steady(text) == steady(shown)
    assert f"```text\n{shown.strip()}\n```" in (ROOT / "docs" / "guides" / "sensor_table.md").read_text()


@pytest.mark.slow
def test_the_lines_of_python_print_what_the_pages_show(tmp_path):
    shown = body(RESULTS / "python_lines.md")
    assert steady(python_lines(tmp_path)) == steady(shown)
    assert all((ROOT / page).read_text().count("```python\n") == 1 for page in ("README.md", "docs/index.md"))
