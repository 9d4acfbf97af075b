"""The walk-through of README.md is what the commands print."""

from __future__ import annotations

from benchmarks.pages import RESULTS, ROOT
from benchmarks.walkthrough import commands, transcript, write_data


def steady(text):
    """The lines without figures, which may differ between machines."""
    return [line for line in text.splitlines() if line.startswith("$") or not any(sign.isdigit() for sign in line)]


def test_the_commands_print_what_the_page_shows(tmp_path):
    write_data(tmp_path)
    text = transcript(tmp_path, commands())
    shown = (RESULTS / "walkthrough.txt").read_text()
    assert steady(text) == steady(shown)
    assert f"```text\n{shown.strip()}\n```" in (ROOT / "README.md").read_text()
