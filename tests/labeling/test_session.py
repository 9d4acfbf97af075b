"""A session: which row comes next, what a row shows, and what labels do."""

import numpy as np
import pytest

from cmvmed.labeling import LabeledRow, LabelingSession
from cmvmed.labeling.learner import Learned
from cmvmed.labeling.progress import last_change
from cmvmed.workbench.label_store import Conflict, LabelStore
from cmvmed.workbench.user_errors import ProjectError

N_ROWS = 12


@pytest.fixture
def project(tmp_path):
    lines = [f'r{i},{i}.5,{i % 3},"note <b>{i}</b>, long {i}",{"left" if i == 0 else ""}' for i in range(N_ROWS)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,acc_x,gyr_x,note,label", *lines]))
    (tmp_path / "cmvmed.toml").write_text(
        '[data]\npath = "rows.csv"\nid = "id"\nlabels = "label"\n'
        '[views.acc]\ncolumns = "acc_*"\n[views.gyr]\ncolumns = "gyr_*"\n[views.note]\ncolumns = "note"\n'
        '[columns]\nnote = "text"\n'
    )
    return tmp_path / "cmvmed.toml"


@pytest.fixture
def session(project):
    opened = LabelingSession(project, LabelStore(project.with_name("labels.sqlite")), learn=False)
    yield opened
    opened.close()


def learned(session, probabilities, **more):
    """The session as after a fit with the given probabilities of the class "right"."""
    p = np.asarray(probabilities, dtype=np.float32)
    session._on_result(Learned(1, ("left", "right"), np.stack([1 - p, p], axis=1), **more))


def label(session, row, name="left", window="w", seen=None, **more):
    return session.record(row, "label", name, window=window, seen=seen, **({"chosen_by": "random"} | more))


def walk(session, strategy, n, **more):
    found = []
    for _ in range(n):
        choice = session.next_row(strategy, "w", skip=found, **more)
        if choice is None:
            break
        found.append(choice.row)
    return found


def test_before_a_fit_all_open_rows_come_once_in_any_order(session):
    assert sorted(walk(session, "suggest", 99)) == list(range(1, N_ROWS))  # row 0 has a label in the data


def test_suggested_rows_come_first_and_labeled_ones_never(session):
    learned(session, np.linspace(0.5, 1.0, N_ROWS), suggested=(7, 3, 5), reasons=("a", "b", "c"))
    label(session, 3)
    assert walk(session, "suggest", 3) == [7, 5, 1]  # then the least certain
    assert session.next_row("suggest", "w").reason == "a"
    strategies = [session.next_row("suggest", "w", skip=skip).strategy for skip in ([], [7, 5])]
    assert strategies == ["suggest", "unsure"]  # what a label is marked with


def test_rows_are_marked_as_random_as_long_as_nothing_is_suggested(session):
    assert session.next_row("suggest", "w").strategy == "random"


def test_a_fit_that_fails_leaves_what_was_learned(session):
    session._on_result(Learned(0, suggested=(7, 3), reasons=("a", "b")))
    session._on_result(Learned(1, problem="A first fit needs labels of two classes."))
    assert session.next_row("suggest", "w").row == 7
    assert "two classes" in session.status()["problem"]


def test_least_certain_rows_are_ordered_by_their_margin(session):
    p = np.linspace(0.0, 1.0, N_ROWS) ** 2
    learned(session, p)
    margin = np.abs(2 * p - 1)
    assert walk(session, "unsure", 99) == [row for row in np.argsort(margin) if row != 0]


def test_rows_on_which_views_disagree_come_first(session):
    same = np.full((N_ROWS, 2), 0.5, dtype=np.float32)
    other = same.copy()
    other[4], other[9] = (0.9, 0.1), (0.7, 0.3)
    learned(session, np.full(N_ROWS, 0.5), by_view={"acc": same, "gyr": other})
    assert walk(session, "disagree", 2) == [4, 9]


def test_review_and_doubtful_show_labeled_rows(session):
    p = np.full(N_ROWS, 0.9)
    label(session, 2), label(session, 5), label(session, 6, "right")
    learned(session, p)
    assert walk(session, "review", 9, of_class="left") == [0, 2, 5]
    assert walk(session, "doubtful", 9) == [0, 2, 5]
    assert "sensors say 'right'" in session.next_row("doubtful", "w").reason


def test_two_windows_get_different_rows(session):
    assert session.next_row("random", "one").row != session.next_row("random", "two").row
    assert session.next_row("random", "one").row == session.next_row("random", "one").row


def test_a_label_overrides_that_of_the_data_and_undo_restores_it(session):
    event = label(session, 0, "right")
    assert session.label_of(0) == "right"
    assert session.undo("w").undoes == event.revision
    assert session.label_of(0) == "left"
    assert not session.is_open(0)


def test_unsure_rows_are_neither_labeled_nor_open(session):
    session.record(4, "unsure", None, chosen_by="suggest", window="w", seen=None)
    assert session.label_of(4) is None
    assert 4 not in walk(session, "random", 99)
    assert session.status()["unsure"] == 1


def test_cleared_rows_are_open_again(session):
    event = label(session, 4)
    session.record(4, "clear", None, chosen_by="review", window="w", seen=event.revision)
    assert 4 in walk(session, "random", 99)


def test_a_row_shows_cells_texts_and_opinions_as_text(session):
    learned(session, np.full(N_ROWS, 0.25))
    row = session.row(3)
    assert row["panels"][0] == {"view": "acc", "parts": [{"kind": "table", "cells": [["acc_x", "3.5"]], "n_more": 0}]}
    assert row["panels"][2]["parts"][0]["text"] == "note <b>3</b>, long 3"
    assert row["opinions"]["consensus"] == [0.75, 0.25]


@pytest.mark.parametrize("row", [-1, N_ROWS, "1", 1.0, True, None])
def test_rows_that_do_not_exist_are_refused(session, row):
    with pytest.raises(ValueError, match="no row"):
        session.row(row)


@pytest.mark.parametrize("name", ["", "  ", "a" * 101, "a\nb", "\u202eabc", None, 7, "LEFT"])
def test_names_of_classes_that_confuse_are_refused(session, name):
    with pytest.raises(ValueError, match=r"class"):
        session.add_class(name)


def test_labels_are_there_in_the_next_session(project):
    store = project.with_name("labels.sqlite")
    first = LabelingSession(project, LabelStore(store), learn=False)
    label(first, 7, "right")
    first.close()
    second = LabelingSession(project, LabelStore(store), learn=False)
    assert second.label_of(7) == "right"
    assert [c["name"] for c in second.status()["classes"]] == ["left", "right"]
    second.close()


def test_labels_of_another_tool_are_added_once(session):
    rows = [LabeledRow("r3", "right"), LabeledRow("r4", None), LabeledRow("r0", "left")]
    assert session.add_rows(rows) == 3
    assert session.add_rows(rows) == 0
    assert (session.label_of(3), session.status()["unsure"]) == ("right", 1)
    with pytest.raises(ProjectError, match="'nobody'"):
        session.add_rows([LabeledRow("r5", "left"), LabeledRow("nobody", "left")])
    assert session.label_of(5) is None


def test_repeated_identifiers_are_refused(project):
    text = project.with_name("rows.csv").read_text().replace("r5,", "r4,")
    project.with_name("rows.csv").write_text(text)
    with pytest.raises(ProjectError, match="'r4'"):
        LabelingSession(project, LabelStore(project.with_name("labels.sqlite")), learn=False)


def test_advice_follows_the_labels(session):
    assert "two classes" in session.status()["advice"]
    label(session, 1, "right")
    assert "one more row" in session.status()["advice"]
    label(session, 2, "right"), label(session, 3, "left")
    assert "Go on" in session.status()["advice"]


def test_more_labels_stop_helping_when_they_change_few_classes(session):
    label(session, 1, "right"), label(session, 2, "right"), label(session, 3, "left")
    p = np.linspace(0.0, 1.0, N_ROWS)
    learned(session, p, n_labels=4)
    learned(session, 1 - p, n_labels=13)
    assert last_change(session.history) is None  # nine labels say nothing yet
    learned(session, 1 - p, n_labels=14)
    assert last_change(session.history) == (10, 1.0)
    assert "still help" in session.status()["advice"]
    learned(session, 1 - p, n_labels=24)
    assert last_change(session.history) == (10, 0.0)
    assert "or stop" in session.status()["advice"]


def test_counts_are_those_of_the_labels_after_any_events(session):
    rng = np.random.default_rng(0)
    for _ in range(200):
        row, action = int(rng.integers(N_ROWS)), str(rng.choice(["label", "unsure", "clear", "undo"]))
        if action == "undo":
            session.undo("w")
            continue
        name = str(rng.choice(["left", "right"])) if action == "label" else None
        seen = session.row(row)["revision"]
        session.record(row, action, name, chosen_by="random", window="w", seen=seen)
    status, labels = session.status(), [session.label_of(row) for row in range(N_ROWS)]
    assert {c["name"]: c["count"] for c in status["classes"]} == {n: labels.count(n) for n in ("left", "right")}
    before = (labels, session._open.tolist(), dict(+session._counts))
    session._read_store()
    after = ([session.label_of(row) for row in range(N_ROWS)], session._open.tolist(), dict(+session._counts))
    assert before == after


def test_labels_of_another_server_are_shown_after_a_conflict(project, session):
    with LabelStore(project.with_name("labels.sqlite")) as other:
        other.record("r5", "label", "left", chosen_by="random", window="other", seen=None)
    with pytest.raises(Conflict):
        label(session, 5, "right")
    assert session.label_of(5) == "left"


def test_markers_and_classes_that_the_project_does_not_list_are_refused(session, project):
    with pytest.raises(ValueError, match="unsure"):
        session.add_class("Unknown")
    text = project.read_text().replace("[data]\n", '[data]\nclasses = ["left", "up"]\n')
    project.write_text(text)
    listed = LabelingSession(project, LabelStore(project.with_name("more.sqlite")), learn=False)
    assert [c["name"] for c in listed.status()["classes"]] == ["left", "up"]
    with pytest.raises(ValueError, match=r"lists all classes"):
        listed.add_class("down")
    listed.close()
