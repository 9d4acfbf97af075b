"""Text tables of result rows, and expected times of the remaining rows from those of finished ones."""

import pytest

from experiments.result_rows import Key, ResultRow
from experiments.summary import expected_times, format_tables, format_times, summarize


def finished(n_labeled, seconds, method="CMV-MED", dataset="webkb"):
    fields = {"split": 0, "method": method, "protocol": "tuned", "status": "done"}
    return ResultRow("figure2", dataset, n_labeled, **fields, fit_seconds=seconds, predict_seconds=1.0)


def keys(n_labeled, n_splits, method="CMV-MED", dataset="webkb"):
    return [Key("figure2", dataset, n_labeled, split, method, "tuned") for split in range(n_splits)]


def test_rows_take_the_mean_time_at_the_nearest_number_of_labels():
    rows = [finished(5, 9.0), finished(5, 19.0), finished(100, 99.0)]  # with prediction 10, 20 and 100 s
    (time,) = expected_times([*keys(15, 4), *keys(90, 2)], rows)
    assert time.seconds == pytest.approx(4 * 15.0 + 2 * 100.0)
    assert (time.n_rows, time.n_unknown) == (6, 0)


def test_methods_are_sorted_by_time_and_unknown_rows_are_counted():
    rows = [finished(15, 1.0, "CoRLS"), finished(15, 59.0, "CMV-MED")]
    remaining = [*keys(15, 2, "CoRLS"), *keys(15, 2), *keys(15, 3, dataset="ads")]
    times = expected_times(remaining, rows)
    assert [(time.method, time.n_rows, time.n_unknown) for time in times] == [("CMV-MED", 5, 3), ("CoRLS", 2, 0)]
    lines = format_times(times, n_jobs=2).splitlines()
    assert lines[1].split()[:5] == ["CMV-MED", "tuned", "5", "2.0", "97%"]
    assert lines[-1] == (
        "7 rows, 2 minutes on one core, 1 in 2 processes, and 3 rows of unknown time: finish one split first"
    )


def test_nothing_remains():
    assert expected_times([], [finished(5, 1.0)]) == []
    assert format_times([], 2).endswith("0 rows, 0 minutes on one core, 0 in 2 processes")


def rows_of(method, accuracies, dataset="webkb"):
    return [
        ResultRow("table1", dataset, 15, n, method, "defaults", "done", accuracy=accuracy, majority_rate=0.75)
        for n, accuracy in enumerate(accuracies)
    ]


def test_text_table():
    failed = ResultRow("table1", "webkb", 15, 9, "CMV-MED", "defaults", "failed", error="no")
    rows = [*rows_of("CMV-MED", [0.9, 0.95]), failed, *rows_of("SVM-2K", [0.8]), *rows_of("MV-MED", [0.5], "ads")]
    by_method = {(entry.dataset, entry.method): entry for entry in summarize(rows)}
    ours = by_method["webkb", "CMV-MED"]
    assert (round(ours.mean, 3), round(ours.deviation, 3), ours.n_splits, ours.n_failed) == (92.5, 3.536, 2, 1)
    assert (ours.paper_mean, ours.paper_deviation) == (91.7, 5.8)
    assert by_method["webkb", "majority class"].mean == 75.0
    lines = format_tables(rows).splitlines()
    assert "92.5 ± 3.5 [91.7 ± 5.8] (1 failed)" in lines[-1]
    assert [line.split("  ")[0] for line in lines[2:]] == ["majority class", "SVM-2K", "MV-MED", "CMV-MED"]


def test_the_balanced_accuracy_has_a_column_where_the_test_rows_have_other_class_shares():
    rows = [
        ResultRow("table1", name, 50, n, "CMV-MED", "defaults", "done", accuracy=a, balanced_accuracy=b)
        for name in ("footsteps", "sensit")
        for n, (a, b) in enumerate([(0.7, 0.6), (0.8, 0.7)])
    ]
    lines = format_tables(rows).splitlines()
    assert "footsteps, 50 labels, balanced" in lines[0]
    assert "sensit, 50 labels, balanced" not in lines[0]
    assert "75.0 ± 7.1" in lines[-1]
    assert "65.0 ± 7.1" in lines[-1]
    entry = summarize(rows)[0]
    assert (round(entry.balanced_mean, 6), round(entry.balanced_deviation, 3)) == (65.0, 7.071)
