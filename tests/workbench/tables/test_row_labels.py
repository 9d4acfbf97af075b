"""The labels of rows: those of the labeling page, where what was said last counts, and further files of labels."""

import numpy as np
import pandas as pd
import pytest

from cmvmed.workbench import Project, ProjectError, init
from cmvmed.workbench.label_store import LabelStore, labels_path
from tests.workbench.jobs import write_tickets, write_windows

N = 60


@pytest.fixture
def project_file(tmp_path):
    rng = np.random.default_rng(0)
    side = np.arange(N) % 2
    x = rng.normal(size=(N, 4)) + 3.0 * side[:, None]
    given = ["left" if i == 0 else "right" if i == 1 else "" for i in range(N)]
    lines = [f"r{i},{','.join(f'{v:.4f}' for v in x[i])},{given[i]}" for i in range(N)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,acc_x,acc_y,gyr_x,gyr_y,label", *lines]))
    file = tmp_path / "own.toml"
    file.write_text(
        '[data]\npath = "rows.csv"\nid = "id"\nlabels = "label"\n'
        '[views.acc]\ncolumns = "acc_*"\n[views.gyr]\ncolumns = "gyr_*"\n'
    )
    return file


def say(file, *events, chosen_by="suggest"):
    with LabelStore(labels_path(file)) as store:
        for item, action, label in events:
            last = store.last(item)
            seen = None if last is None else last.revision
            store.record(item, action, label, chosen_by=chosen_by, window="w", seen=seen)


def labels(file):
    rows = Project.load(file).rows()
    return dict(zip(rows.ids, rows.labels.values, strict=True)), rows


def test_the_file_is_beside_the_project_file(project_file):
    assert labels_path(project_file) == project_file.with_name("own.labels.sqlite")
    assert labels_path(project_file.parent) == project_file.with_name("cmvmed.labels.sqlite")


def test_without_a_file_nothing_changes(project_file):
    found, rows = labels(project_file)
    assert [key for key, label in found.items() if label is not None] == ["r0", "r1"]
    assert not labels_path(project_file).exists()
    assert rows.labels_drawn == "unknown"


def test_what_was_said_last_counts(project_file):
    say(project_file, ("r0", "label", "right"), ("r1", "unsure", None), ("r2", "label", "left"))
    say(
        project_file,
        ("r2", "label", "right"),
        ("r3", "label", "left"),
        ("r3", "clear", None),
        ("gone", "label", "left"),
    )
    found, rows = labels(project_file)
    assert {key: label for key, label in found.items() if label is not None} == {"r0": "right", "r2": "right"}
    assert "2 labels of the labeling page (own.labels.sqlite)." in rows.messages
    assert any(
        "1 label of own.labels.sqlite belongs to no row" in message and "gone" in message for message in rows.messages
    )
    say(project_file, ("r0", "reset", None))
    assert labels(project_file)[0]["r0"] == "left"


def test_chosen_labels_are_no_random_sample_for_the_model(project_file):
    say(project_file, *((f"r{i}", "label", "right" if i % 2 else "left") for i in range(2, 12)))
    project = Project.load(project_file)
    trained = project.train(project.read())
    assert trained.model.labels_drawn == "chosen"
    assert trained.model.accuracy_estimate().chosen
    assert set(trained.predict(project_file.with_name("rows.csv"))["class"]) == {"left", "right"}
    random = Project.load(project_file, changes={"data.labels_drawn": "random"})
    assert random.rows().labels_drawn == "random"


def test_random_rows_among_chosen_ones_are_known_to_the_model(project_file):
    say(project_file, *((f"r{i}", "label", "right" if i % 2 else "left") for i in range(2, 12)))
    say(project_file, *((f"r{i}", "label", "right" if i % 2 else "left") for i in range(12, 16)), chosen_by="random")
    project = Project.load(project_file)
    table = project.read()
    assert table.ids[table.random_rows].tolist() == [f"r{i}" for i in range(12, 16)]
    assert table.take(np.arange(13)).random_rows.sum() == 1
    assert project.train(table).model.accuracy_estimate().n_random == 4
    assert not project.train(table, labels_drawn="per_class").model.accuracy_estimate().n_random
    assert Project.load(project_file, changes={"data.labels_drawn": "random"}).rows().random_rows is None


def test_labels_drawn_at_random_stay_as_the_project_says(project_file):
    say(project_file, ("r4", "label", "left"), chosen_by="random")
    assert Project.load(project_file).rows().labels_drawn == "unknown"


def test_a_model_file_does_not_need_the_file_of_labels(project_file, tmp_path):
    say(project_file, *((f"r{i}", "label", "right" if i % 2 else "left") for i in range(2, 12)))
    project = Project.load(project_file)
    project.train(project.read()).save(tmp_path / "m.cmvmed")
    from cmvmed.workbench import TrainedProject

    assert TrainedProject.load(tmp_path / "m.cmvmed").project.page_labels is None


def test_another_file_of_that_name_is_one_clear_error(project_file):
    labels_path(project_file).write_text("no database, but long enough to be read as one" * 20)
    with pytest.raises(ValueError, match="not a file of labels"):
        Project.load(project_file).rows()


@pytest.mark.parametrize(
    ("header", "settings", "drawn"),
    [
        ("id,label,reason,score", "", "chosen"),  # as `cmvmed suggest` writes it
        ("id,label,reason,note", "", "unknown"),
        ("id,label,reason,score", 'labels_drawn = "random"\n', "random"),
    ],
)
def test_labels_of_suggested_rows_are_not_a_random_sample(project_file, header, settings, drawn):
    project_file.with_name("next.csv").write_text(f"{header}\nr5,left,between two,0.5\n")
    text = project_file.read_text().replace(
        'labels = "label"\n', f'labels = "label"\nlabel_files = "next.csv"\n{settings}'
    )
    project_file.write_text(text)
    found, rows = labels(project_file)
    assert found["r5"] == "left"
    assert rows.labels_drawn == drawn
    assert (rows.random_rows is None) == (drawn != "chosen")


def test_random_rows_of_suggest_are_known_when_its_file_is_read(project_file):
    project_file.with_name("next.csv").write_text(
        "id,label,reason,score,random\nr5,left,why,0.5,\nr6,right,why,0.4,yes\n"
    )
    text = project_file.read_text().replace('labels = "label"\n', 'labels = "label"\nlabel_files = "next.csv"\n')
    project_file.write_text(text)
    rows = Project.load(project_file).rows()
    assert rows.ids[rows.random_rows].tolist() == ["r6"]
    assert rows.part(4).random_rows.size == len(rows.part(4).ids)


# --- files of labels ---------------------------------------------------------------------------------------------------


@pytest.fixture
def windows(tmp_path):
    write_windows(tmp_path)
    (tmp_path / "cmvmed.toml").write_text(init(tmp_path / "windows.csv", tmp_path / "cmvmed.toml").text)
    return tmp_path


def labels_of(folder, *files):
    """Labels of the rows, and messages."""
    rows = Project.load(folder, changes={"data.label_files": list(files)} if files else None).rows()
    return np.array(rows.labels.values, dtype=object), rows.messages


def test_further_files_of_labels_add_and_replace(windows):
    before, _ = labels_of(windows)
    labeled = np.flatnonzero([value is not None for value in before])
    free = np.flatnonzero([value is None for value in before])
    ids = [f"w{i:03d}" for i in (*free[:3], labeled[0])]
    other = "crawl" if before[labeled[0]] == "back" else "back"
    lines = [f"{key},because,{label}" for key, label in zip(ids, ["crawl", "", "unknown", other], strict=True)]
    (windows / "next.csv").write_text("\n".join(["window_id,reason,label", *lines]))
    after, messages = labels_of(windows, "next.csv")
    assert after[free[:3]].tolist() == ["crawl", None, None]
    assert after[labeled[0]] == other
    assert (np.delete(after, [free[0], labeled[0]]) == np.delete(before, [free[0], labeled[0]])).all()
    assert "2 labels of next.csv were taken." in messages
    assert "1 label of next.csv replaces another label of its row." in messages


def test_later_files_precede_and_patterns_are_sorted(windows):
    (windows / "next_1.csv").write_text("window_id;label\nw000;crawl\nw001;crawl\n")
    (windows / "next_2.csv").write_text("window_id,label\nw001,back\n")
    assert labels_of(windows, "next_*.csv")[0][:2].tolist() == ["crawl", "back"]
    assert labels_of(windows, "next_2.csv", "next_1.csv")[0][:2].tolist() == ["crawl", "crawl"]
    with pytest.raises(ProjectError, match=r"nothing\.csv"):
        labels_of(windows, "nothing.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_of_labels_and_new_rows_may_differ_from_those_of_the_data(tmp_path, separator):
    write_tickets(tmp_path)
    (tmp_path / "cmvmed.toml").write_text(init(tmp_path / "tickets.csv", tmp_path / "cmvmed.toml").text)
    project = Project.load(tmp_path)
    assert project.settings.data.separator == ";"
    frame = pd.read_csv(tmp_path / "tickets.csv", sep=";", decimal=",", keep_default_na=False)
    frame[["ticket", "category"]].to_csv(tmp_path / "labels.csv", sep=separator, index=False)
    frame.to_csv(tmp_path / "new.csv", sep=separator, decimal="." if separator == "," else ",", index=False)
    table, new = project.read(), project.read_new(tmp_path / "new.csv")
    np.testing.assert_array_equal(new.views["numbers"], table.views["numbers"])
    changed = Project.load(tmp_path, changes={"data.labels": "labels.csv"})
    assert changed.rows().labels.counts == project.rows().labels.counts


def test_names_of_one_class_in_two_forms_of_unicode_are_one_class(project_file):
    table = project_file.with_name("rows.csv")
    text = table.read_text().replace(",left", ",caf\u00e9").replace(",right", ",no")
    lines = text.split("\n")
    lines[5] += "cafe\u0301"
    lines[6] += "\u200bno"
    table.write_text("\n".join(lines), encoding="utf-8")
    _, rows = labels(project_file)
    assert rows.labels.counts == {"caf\u00e9": 2, "no": 2}


def test_identifiers_that_spell_numbers_stay_as_they_are_written(project_file):
    table = project_file.with_name("rows.csv")
    lines = table.read_text().split("\n")
    lines = [lines[0], *(f"7.{i:02d},{line.split(',', 1)[1]}" for i, line in enumerate(lines[1:]))]
    table.write_text("\n".join(lines))
    project_file.with_name("more.csv").write_text("id,label\n7.10,left\n7.01,right\n")
    project_file.write_text(project_file.read_text().replace('id = "id"', 'id = "id"\nlabel_files = "more.csv"'))
    found, _ = labels(project_file)
    assert (found["7.10"], found["7.01"], found["7.11"]) == ("left", "right", None)


def test_names_that_spell_powers_of_ten_stay_as_they_are_written(project_file):
    """The wells 1E5 and 10E4 of a plate are two rows, and neither is 100000."""
    table = project_file.with_name("rows.csv")
    lines = table.read_text().replace(",left", ",2e3").replace(",right", ",2000").split("\n")
    keys = ["1E5", "10E4", *(f"{i}e2" for i in range(len(lines)))]
    table.write_text(
        "\n".join([lines[0], *(f"{key},{line.split(',', 1)[1]}" for key, line in zip(keys, lines[1:-1], strict=False))])
    )
    found, rows = labels(project_file)
    assert list(found)[:3] == ["1E5", "10E4", "0e2"]
    assert set(rows.labels.counts) == {"2e3", "2000"}


def test_formulas_in_files_of_labels_are_restored(project_file):
    project_file.with_name("more.csv").write_text("id,label\nr2,'=up\n")
    project_file.write_text(project_file.read_text().replace('id = "id"', 'id = "id"\nlabel_files = "more.csv"'))
    assert labels(project_file)[0]["r2"] == "=up"
