"""The tables in README.md and docs/ are those of the result files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pages import RESULTS, ROOT, accuracy_grid, fill, markdown, suite_table, variants_table

ACCURACY = (RESULTS / "accuracy.md").read_text()


def part(page, mark):
    """The text between the marks of a page."""
    text = (ROOT / page).read_text()
    return text.split(f"<!-- {mark}: begin -->")[1].split(f"<!-- {mark}: end -->")[0].strip()


@pytest.mark.parametrize(
    ("page", "mark", "measured"),
    [
        ("README.md", "accuracy", markdown(accuracy_grid(ACCURACY))),
        ("README.md", "suite", suite_table((RESULTS / "suite.md").read_text())),
        ("docs/accuracy.md", "accuracy", markdown(accuracy_grid(ACCURACY))),
        ("docs/accuracy.md", "ablation", (RESULTS / "ablation.md").read_text()),
        ("docs/accuracy.md", "calibration", (RESULTS / "calibration.md").read_text()),
        ("docs/accuracy.md", "suite", suite_table((RESULTS / "suite.md").read_text())),
        ("docs/accuracy.md", "suite_ablation", variants_table((RESULTS / "suite_ablation.md").read_text())),
        ("docs/accuracy.md", "draws", (RESULTS / "label_draws.md").read_text()),
        ("docs/model_file.md", "sizes", (RESULTS / "model_files.md").read_text()),
    ],
)
def test_pages_show_what_was_measured(page, mark, measured):
    assert part(page, mark) == measured.strip()


def test_table_1_is_that_of_the_result_file():
    text = (RESULTS / "table1.txt").read_text().split("\n\n", 1)[1].strip()
    assert part("docs/reproduction.md", "table1") == f"```text\n{text}\n```"


def test_scaling_shows_what_was_measured():
    measured = (RESULTS / "scale.md").read_text().strip()
    assert part("docs/scaling.md", "measured").startswith(measured)


def test_fill_changes_only_the_text_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nafter <!-- b: begin -->\nb\n<!-- b: end -->\n")
    fill(page, "a", "new\n")
    assert page.read_text() == (
        "before\n<!-- a: begin -->\n\nnew\n\n<!-- a: end -->\nafter <!-- b: begin -->\nb\n<!-- b: end -->\n"
    )
    with pytest.raises(ValueError, match="not enough values"):
        fill(page, "c", "new")


def test_the_best_of_each_column_is_bold():
    lines = [
        ["method", "x", "y"],
        ["majority class", "99.0 ± 1.0", "–"],
        ["one", "90.0 ± 1.0", "80.0 ± 2.0"],
        ["two", "89.9 ± 9.0", "–"],
    ]
    assert markdown(lines).splitlines()[2:] == [
        "| majority class | 99.0 ± 1.0 | – |",
        "| one | **90.0 ± 1.0** | **80.0 ± 2.0** |",
        "| two | 89.9 ± 9.0 | – |",
    ]
