"""The tables in README.md and docs/ are those of the result files."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import comparison, comparison_peers, provenance
from benchmarks.pages import (
    accuracy_grid,
    calibration_sentence,
    check,
    coverage_sentence,
    fault_sentence,
    faults_table,
    fill,
    groups_that_differ,
    headline_table,
    ingredients,
    interval_table,
    label_ratios,
    main_methods,
    markdown,
    mean_rows,
    named_peers_table,
    onnx_sentences,
    section,
    size_sentences,
    speed_table,
    suite_table,
    table_columns,
    variants_table,
    without_deviations,
)
from benchmarks.provenance import RESULTS, ROOT, body, heading, missing, outdated, read
from benchmarks.reproduction import read_results
from experiments.summary import format_tables

ACCURACY = body(RESULTS / "accuracy.md")
ACTIVE = body(RESULTS / "active_learning.md")
SUITE = body(RESULTS / "suite.md")


def part(page, mark):
    """The text between the marks of a page."""
    text = (ROOT / page).read_text()
    return text.split(f"<!-- {mark}: begin -->")[1].split(f"<!-- {mark}: end -->")[0].strip()


@pytest.mark.parametrize(
    ("page", "mark", "measured"),
    [
        ("README.md", "suite", headline_table(SUITE)),
        ("README.md", "python_lines", body(RESULTS / "python_lines.md")),
        ("docs/index.md", "python_lines", body(RESULTS / "python_lines.md")),
        ("docs/accuracy.md", "accuracy", markdown(main_methods(accuracy_grid(ACCURACY)))),
        ("docs/accuracy.md", "calibration", calibration_sentence(body(RESULTS / "calibration.md"))),
        ("docs/accuracy.md", "suite", suite_table(SUITE)),
        ("docs/accuracy.md", "suite_ablation", variants_table(body(RESULTS / "suite_ablation.md"))),
        ("docs/accuracy.md", "draws", without_deviations(body(RESULTS / "label_draws.md"))),
        ("docs/accuracy.md", "new_groups", groups_that_differ(body(RESULTS / "new_groups.md"))),
        ("docs/reproduction.md", "from_paper", ingredients(body(RESULTS / "from_paper.md"))),
        ("docs/inspection.md", "sensor_health", fault_sentence(body(RESULTS / "sensor_health.md"))),
        ("docs/inspection.md", "prediction_sets", coverage_sentence(body(RESULTS / "prediction_sets.md"))),
        ("docs/features.md", "raw_recordings", mean_rows(body(RESULTS / "raw_recordings.md"))),
        ("docs/model_file.md", "sizes", size_sentences(body(RESULTS / "model_files.md"))),
        ("docs/labeling.md", "active_ratios", label_ratios(ACTIVE)),
        ("docs/labeling.md", "random_intervals", interval_table(body(RESULTS / "random_rows.md"))),
        ("docs/robustness.md", "faults", faults_table()),
        ("docs/scaling.md", "speed", speed_table(body(RESULTS / "speed.md"))),
        ("docs/onnx.md", "onnx", onnx_sentences(body(RESULTS / "onnx.md"))),
        ("docs/comparison.md", "named_peers", named_peers_table(body(RESULTS / "suite_named_peers.md"))),
    ],
)
def test_pages_show_what_was_measured(page, mark, measured):
    assert part(page, mark) == measured.strip()


def test_a_page_may_show_some_columns_and_means_alone():
    text = "Two splits.\n\n| a | b, 15 labels | c |\n| --- | --- | --- |\n| x | 1.5 ± 0.2 | 2 |"
    shown = without_deviations(table_columns(text, ["c", "b"]))
    assert shown == "Two splits.\n\n| c | b, 15 labels |\n| --- | --- |\n| 2 | 1.5 |"
    with pytest.raises(ValueError, match="no column 'd'"):
        table_columns(text, ["d"])


def test_the_calibration_in_a_sentence_sums_intervals_and_has_the_extremes():
    lines = ["| a | 0.021 | 0.030 | 7 of 8 |", "| b | 0.082 | 0.011 | 8 of 8 |"]
    head = "| task | its error | calibrated | intervals that hold |\n| --- | --- | --- | --- |"
    sentence = " ".join(calibration_sentence("\n".join([head, *lines])).split())
    assert "held in 15 of 16 fits to 2 tasks" in sentence
    assert "off by 2 to 8 points" in sentence
    assert "error was 0.011 to 0.030" in sentence


def test_methods_are_lines_and_sets_are_columns():
    text = "\n\n".join(
        f"### By set: {kind}, held out rows\n\n| set | cmvmed | lr | best peer per cell |\n| --- | --- | --- | --- |\n{line}"
        for kind, line in (("sensors", "| room | 70.0 | 80.5 | 80.5 |"), ("others", "| mfeat | 97.0 | 90.0 | 90.0 |"))
    )
    assert named_peers_table(text).splitlines() == [
        "| method | room | mfeat |",
        "| --- | --- | --- |",
        "| **`CMVMED()`** | 70.0 | **97.0** |",
        "| logistic regression, labels only | **80.5** | 90.0 |",
    ]


def test_the_comparison_is_short():
    assert len(re.findall(r"[A-Za-z]{2,}", (ROOT / "docs/comparison.md").read_text())) <= 900


def test_every_result_file_says_what_it_is_from():
    assert missing(sorted(RESULTS.iterdir())) == []


def test_a_result_file_without_commit_date_and_command_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    line = "# python -m benchmarks.new --draws 2 (commit 0123abc-dirty, 2026-01-31)"
    files = {
        "good.md": f"{line}\n\n| a |\n",
        "good.json": json.dumps({"provenance": line, "fits": []}),
        "no date.md": f"{line.replace(', 2026-01-31', '')}\n\n| a |\n",
        "no commit.md": f"{line.replace('0123abc-dirty', 'unknown')}\n\n| a |\n",
        "list.json": "[]",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read(tmp_path / "good.md") == ("python -m benchmarks.new --draws 2", "0123abc-dirty", "2026-01-31")
    assert body(tmp_path / "good.md") == "| a |\n"
    assert check(sorted(tmp_path.iterdir())) == 1
    printed = capsys.readouterr().out
    assert all((f"command: {name}" in printed) is not name.startswith("good") for name in files)
    assert check([tmp_path / "good.md"]) == 0


def test_a_heading_is_read_back(tmp_path: Path):
    (tmp_path / "new.md").write_text(f"{heading('python -m benchmarks.new')}\n\n| a |\n")
    if not (ROOT / ".git").exists():
        pytest.skip("there is no commit to name")
    assert read(tmp_path / "new.md").command == "python -m benchmarks.new"


def test_a_file_is_outdated_by_the_code_that_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of two files from one commit, features make one older and the core the other."""

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=name", "-c", "user.email=name@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    def change(package: str) -> str:
        path = tmp_path / "src" / "cmvmed" / package / "new.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.parent}\n")
        git("add", ".")
        git("commit", "-m", package)
        return git("rev-parse", "--short", "HEAD").strip()

    def named() -> list[str]:
        return [line.partition(":")[0] for line in outdated([features, fits])]

    git("init")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    first = change("numerics")
    features, fits = tmp_path / "difficulty.md", tmp_path / "suite.md"
    for file in (features, fits):
        file.write_text(f"# python -m benchmarks.new (commit {first}, 2026-01-31)\n")
    assert named() == []
    change("workbench")
    assert named() == []
    change("features")
    assert named() == ["difficulty.md"]
    change("core")
    assert named() == ["difficulty.md", "suite.md"]


def test_the_code_that_result_files_measure_is_there():
    assert provenance.MEASURED.keys() <= {path.name for path in RESULTS.iterdir()}
    paths = {path for code in (provenance.FITS, *provenance.MEASURED.values()) for path in code}
    assert [path for path in paths if not (ROOT / path).is_dir()] == []


def test_table_1_is_that_of_the_result_file():
    rows = [row for row in read_results(RESULTS / "reproduction.csv") if row.spec == "table1"]
    assert body(RESULTS / "table1.txt").strip() == format_tables(rows).strip()


def test_fill_changes_only_the_text_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nafter <!-- b: begin -->\nb\n<!-- b: end -->\n")
    fill(page, "a", "new\n")
    assert page.read_text() == (
        "before\n<!-- a: begin -->\n\nnew\n\n<!-- a: end -->\nafter <!-- b: begin -->\nb\n<!-- b: end -->\n"
    )
    with pytest.raises(ValueError, match="not enough values"):
        fill(page, "c", "new")


WITH_KERNELS = """### webkb: 15 labels, 485 unlabeled, 2 splits

| method | kernel | accuracy | s |
| --- | --- | --- | --- |
| majority class | – | 78.0 ± 1.0 | – |
| SVM-2K | rbf | 80.0 ± 1.0 | 0.1 |
| CMVMED.paper() | rbf | 81.0 ± 1.0 | 0.1 |
| CMV-MED in the paper | rbf | 91.7 ± 5.8 | – |

| CMV-MED against | difference |
| --- | --- |
| SVM-2K | +1.0 |
"""


def test_tables_have_the_kernels_of_the_result_file():
    assert markdown(accuracy_grid(WITH_KERNELS)).splitlines() == [
        "| method | kernel | webkb, 15 labels |",
        "| --- | --- | --- |",
        "| majority class | – | 78.0 ± 1.0 |",
        "| SVM-2K | rbf | 80.0 ± 1.0 |",
        "| CMVMED.paper() | rbf | **81.0 ± 1.0** |",
        "| CMV-MED in the paper | rbf | 91.7 ± 5.8 |",
    ]


def test_ratios_of_labels_are_the_means_by_part_of_the_labels():
    means = "| **mean ratio** |  |  | {3} | {4} | {3} | {1} | {2} |"
    text = "### Held-out rows\n\n" + means.format(*"abcde") + "\n\n### Unlabeled rows\n\n" + means.format(*"vwxyz")
    assert label_ratios(text).splitlines()[2:] == [
        "| held-out rows | b | c | d | e |",
        "| unlabeled rows | w | x | y | z |",
    ]


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


@pytest.mark.slow
@pytest.mark.parametrize("feature", comparison.FEATURES, ids=[feature.name for feature in comparison.FEATURES])
def test_what_the_comparison_says_of_us_is_true(feature):
    line = next(line for line in part("docs/comparison.md", "comparison").splitlines() if f"| {feature.name} |" in line)
    assert line == f"| {feature.name} | {'yes' if feature.works() else 'no'} | {' | '.join(feature.peers)} |"


def test_a_feature_that_does_not_work_is_noticed():
    def fail() -> None:
        raise AssertionError("it does not")

    broken = dataclasses.replace(comparison.FEATURES[0], attempt=fail)
    with pytest.raises(AssertionError, match="does not"):
        broken.works()


@pytest.mark.parametrize(("package", "feature"), comparison_peers.TRIALS)
def test_what_the_comparison_says_of_others_is_what_a_trial_gives(package, feature):
    if not comparison_peers.installed(package):
        pytest.skip(f"{package} is not installed")
    position = next(i for i, peer in enumerate(comparison.PEERS) if peer.startswith(f"{package} "))
    (said,) = [entry.peers[position] for entry in comparison.FEATURES if entry.name == feature]
    assert comparison_peers.works(comparison_peers.TRIALS[package, feature]) is not said.startswith("no")


def test_the_compared_versions_are_the_installed_ones():
    for peer in comparison.PEERS:
        package, _, compared = peer.rpartition(" ")
        found = comparison_peers.installed(package)
        assert not found or found.startswith(f"{compared}.") or found == compared, "try the features of the new version"


def test_a_trial_that_fails_counts_as_not_working():
    assert not comparison_peers.works(lambda: 1 / 0)
    assert not comparison_peers.works(lambda: False)
    assert comparison_peers.works(lambda: None)


def suite_row(method, columns, heading="All draws"):
    """Values of a method in a table of the suite."""
    _, _, *rows = suite_table(SUITE, ["method", *columns], heading).splitlines()
    row = next(row for row in rows if row.startswith(f"| {method} |"))
    return [cell.strip() for cell in row.strip("| ").split("|")][1:]


def test_the_sentences_of_the_readme_have_the_figures_of_the_suite():
    text = " ".join((ROOT / "README.md").read_text().split())
    kinds = ("sensors", "others")
    below = suite_row("cmvmed", [f"splits < -3 %: {kind}" for kind in kinds])
    assert "{:.0f} % of single splits (others: {:.0f} %) are".format(*map(float, below)) in text
    rows = [f"interval holds, {rows} %: {kind}" for rows in ("unlabeled", "held out") for kind in kinds]
    holds = [float(share) for share in suite_row("cmvmed", rows)]
    assert f"holds in {min(holds):.0f} to {max(holds):.0f} % of the fits" in text
    least = suite_row("cmvmed", [f"interval holds least: {kind}" for kind in kinds])
    share, name = min((cell.split() for cell in least), key=lambda cell: float(cell[0]))
    assert f"only in {share} % on the worst set {name[:-1]}, 27 classes)" in text
    goals = section(SUITE, "Goals: cmvmed").splitlines()
    to_trees = next(line for line in goals if line.startswith("| to extra_trees |")).split(" | ")[2]
    lead, name, lowest = re.fullmatch(r"\+([\d.]+) \((\w+) -([\d.]+)\)", to_trees).groups()
    by_draw = []
    for draw in ("random", "per_class"):
        (ours,), (trees,) = (
            suite_row(method, ["held out %: sensors"], f"Labels drawn: {draw}") for method in ("cmvmed", "extra_trees")
        )
        by_draw.append(f"{float(ours) - float(trees):.1f}")
    draws = f"({by_draw[0]} with labels at random, {by_draw[1]} per class)"
    assert f"the lead over extra trees is small: {lead} points {draws}" in text
    columns, _, *sets = section(SUITE, "By set: sensors, held out rows").split("\n\n")[0].splitlines()
    ours, trees = (columns.split(" | ").index(method) for method in ("cmvmed", "extra_trees"))
    lost = [row for row in (line.split(" | ") for line in sets) if float(row[trees]) > float(row[ours])]
    assert f"They win on {len(lost)} of the {len(sets)} sets, by up to {lowest} points ({name})" in text


def test_the_time_and_memory_of_a_million_rows_are_measured():
    tables = body(RESULTS / "peers.md").split("1,000,000 rows |\n")[1:]
    cells = [table.split("| CMVMED |")[1].splitlines()[0].split(" | ")[-1].strip("| ") for table in tables]
    found = [re.fullmatch(r".* %, ([\d.]+) s, (\d+) MiB", cell) for cell in cells]
    seconds, memory = [float(match[1]) for match in found], [int(match[2]) for match in found]
    sentence = (
        f"1,000,000 rows took {min(seconds):.0f} to {max(seconds):.0f} s and at most {max(memory) / 1024:.1f} GiB."
    )
    assert sentence in " ".join((ROOT / "docs" / "scaling.md").read_text().split())


def test_the_readme_fits_on_a_screen_or_two():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
