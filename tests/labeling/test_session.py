"""A session: which row comes next, what a row shows, and what labels do."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cmvmed.labeling import LabeledRow, LabelingSession, export_rows, import_rows
from cmvmed.labeling.content import unit_of
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


@pytest.mark.parametrize("strategy", ["suggest", "unsure", "disagree"])
def test_every_fifth_label_is_of_a_random_row_and_marked_as_such(session, strategy):
    p = np.linspace(0.5, 1.0, N_ROWS)
    learned(session, p, suggested=(7, 3, 5, 4), reasons=("a", "b", "c", "d"), by_view={"acc": np.c_[p, 1 - p]})
    label(session, 7), label(session, 3), label(session, 5)  # with that of the data there are four
    choice = session.next_row(strategy, "w")
    assert (choice.row, choice.strategy) == (session.next_row("random", "w").row, "random")
    assert "at random" in choice.reason
    assert session.next_row("review", "w", of_class="left").strategy == "review"
    label(session, choice.row, chosen_by=choice.strategy)
    assert session.next_row(strategy, "w").strategy == strategy


def test_random_rows_can_be_left_out(session):
    session._random_share = 0.0
    learned(session, np.linspace(0.5, 1.0, N_ROWS), suggested=(7, 3, 5, 4), reasons=("a", "b", "c", "d"))
    label(session, 7), label(session, 3), label(session, 5)
    assert session.next_row("suggest", "w").row == 4


def test_the_learner_is_told_which_labels_are_of_random_rows(session):
    asked = []
    session._learner = SimpleNamespace(request=lambda *given: asked.append(given), busy=False, close=lambda: None)
    label(session, 4)
    assert asked[-1][2] is None  # nothing was chosen
    label(session, 6, "right", chosen_by="suggest")
    assert [row for row, random in enumerate(asked[-1][2]) if random] == [4]


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
    (part,) = row["panels"][0]["parts"]
    assert [(cell["name"], cell["value"]) for cell in part["cells"]] == [("acc_x", "3.5")]
    assert row["panels"][2]["parts"][0]["text"] == "note <b>3</b>, long 3"
    assert row["opinions"]["consensus"] == [0.75, 0.25]


def test_numbers_have_their_distance_from_the_mean_and_the_medians_of_the_classes(session):
    values = np.arange(N_ROWS) + 0.5
    label(session, 2), label(session, 7), label(session, 4, "right")
    (part,) = session.row(3)["panels"][0]["parts"]
    assert part["classes"] == ["left"]  # a single label of "right" is no median
    (cell,) = part["cells"]
    assert cell["z"] == pytest.approx((3.5 - values.mean()) / values.std(), abs=0.005)
    assert cell["medians"] == [f"{np.median(values[[0, 2, 7]]):.4g}"]
    label(session, 9, "right")
    (part,) = session.row(3)["panels"][0]["parts"]
    assert part["cells"][0]["medians"] == ["2.5", f"{np.median(values[[4, 9]]):.4g}"]


def test_one_sensor_has_no_opinion_beside_that_of_the_model(session):
    p = np.full((N_ROWS, 2), 0.5, dtype=np.float32)
    learned(session, np.full(N_ROWS, 0.87), by_view={"sound": p})
    assert session.row(3)["opinions"]["views"] == {}
    learned(session, np.full(N_ROWS, 0.87), by_view={"sound": p, "acc": p})
    assert list(session.row(3)["opinions"]["views"]) == ["sound", "acc"]


def with_learner(session, monkeypatch, *, busy):
    monkeypatch.setattr(
        session, "_learner", SimpleNamespace(busy=busy, request=lambda *_, **__: None, close=lambda: None)
    )


def test_a_reason_names_its_fit_while_the_next_one_runs(session, monkeypatch):
    learned(session, np.full(N_ROWS, 0.5), suggested=(7, 3), reasons=("a", "b"), n_labels=1)
    with_learner(session, monkeypatch, busy=True)
    assert session.next_row("suggest", "w").reason == "a (by the fit to 1 label; the next one runs)"
    with_learner(session, monkeypatch, busy=False)
    assert session.next_row("suggest", "w").reason == "a"


def test_what_is_missing_for_an_estimate_is_not_that_of_the_fit_before(session, monkeypatch):
    assert session.status()["no_estimate"] == "needs labels of two classes"
    session._on_result(Learned(1, problem="A first fit needs labels of two classes."))
    label(session, 1, "right")
    with_learner(session, monkeypatch, busy=True)
    assert session.status()["no_estimate"] == "learning…"
    assert session.status()["problem"] is None
    with_learner(session, monkeypatch, busy=False)
    assert "first fit" in session.status()["no_estimate"]
    learned(session, np.full(N_ROWS, 0.5))
    assert session.status()["no_estimate"] == "needs two labels of a class"


def contexts(project, **changes):
    """Rows with a subject, a time, a link and pictures, which is what ``context`` may name."""
    frame = pd.read_csv(project.with_name("rows.csv"))
    frame["subject"] = [f"s{i % 3}" for i in range(N_ROWS)]
    frame["recorded"] = [f"2025-03-01 10:{i:02d}:00" for i in range(N_ROWS)]
    frame["truth"] = ["left", "right"] * (N_ROWS // 2)
    frame["video"] = [f"https://example.org/{i}" if i else "javascript:alert(1)" for i in range(N_ROWS)]
    frame["photo"] = ["a.png", "../secret.png", "gone.png", "rows.csv"] * (N_ROWS // 4)
    frame.to_csv(project.with_name("rows.csv"), index=False)
    project.with_name("a.png").write_bytes(b"picture")
    project.parent.with_name("secret.png").write_bytes(b"secret")
    added = "".join(f"{key} = {value}\n" for key, value in changes.items())
    text = project.read_text().replace("[data]\n", f'[data]\ngroups = "subject"\n{added}')
    project.write_text(text)
    return LabelingSession(project, LabelStore(project.with_name("labels.sqlite")), learn=False)


def test_the_context_of_a_row_is_its_group_and_times_and_never_another_column(project):
    session = contexts(project)
    assert [(cell["name"], cell["text"]) for cell in session.row(4)["context"]] == [
        ("subject", "s1"),
        ("recorded", "2025-03-01 10:04:00"),
    ]
    session.close()


def test_chosen_columns_are_texts_links_and_pictures_of_the_data(project):
    session = contexts(project, context='["video", "photo", "acc_x"]')
    kinds = [{cell["name"]: cell["kind"] for cell in session.row(row)["context"]} for row in range(4)]
    assert [kind["video"] for kind in kinds] == ["text", "link", "link", "link"]
    assert [kind["photo"] for kind in kinds] == ["picture", "text", "text", "text"]
    assert session.picture(0, "photo") == (b"picture", "image/png")
    for row, column in ((1, "photo"), (2, "photo"), (3, "photo"), (0, "video"), (0, "truth")):
        with pytest.raises(ValueError, match="no such picture"):
            session.picture(row, column)
    session.close()


def test_a_column_of_the_context_that_does_not_exist_is_named(project):
    with pytest.raises(ProjectError, match=r"no column 'vidoe', .*Did you mean 'video'"):
        contexts(project, context='["vidoe"]')


@pytest.mark.parametrize(
    ("name", "unit"), [("acc_x [m/s²]", "m/s²"), ("temp (°C)", "°C"), ("acc_x", ""), ("a (b) c", "")]
)
def test_units_are_those_in_the_names_of_columns(name, unit):
    assert unit_of(name) == unit


def test_annotators_agree_disagree_and_are_reviewed(session):
    """Cohen's kappa: 3 of 4 labels are equal, 0.5 by chance."""
    said = {"anna": ["left", "left", "right", "right"], "ben": ["left", "left", "right", "left"]}
    for name, labels in said.items():
        for row, of_row in enumerate(labels, 1):
            seen = session.row(row)["revision"]
            label(session, row, of_row, seen=seen, annotator=name, window=name)
    (pair,) = session.status()["agreement"]
    assert (pair["first"], pair["second"], pair["n_rows"], pair["n_equal"]) == ("anna", "ben", 4, 3)
    by_chance = (2 * 3 + 2 * 1) / 16
    assert pair["kappa"] == pytest.approx((0.75 - by_chance) / (1 - by_chance))
    choice = session.next_row("disputed", "w")
    assert (choice.row, choice.reason) == (4, "anna says 'right', ben says 'left'")
    label(session, 4, "right", seen=session.row(4)["revision"], annotator="carl", chosen_by="disputed")
    assert session.next_row("disputed", "w") is None
    assert session.status()["disputed"] == 0
    assert session.status()["agreement"] == [pair]  # a review is no opinion of its own
    before = session._by_annotator
    session._read_store()
    assert session._by_annotator == before
    assert {row.annotator for row in session.labeled_rows()} == {"ben", "carl"}


def test_a_second_opinion_is_asked_of_those_who_have_not_given_one(session):
    label(session, 3, annotator="anna"), label(session, 5, annotator="anna"), label(session, 6, annotator="ben")
    assert set(walk(session, "second", 9, annotator="ben")) == {3, 5}
    assert set(walk(session, "second", 9, annotator="anna")) == {6}
    assert set(walk(session, "second", 9)) == {3, 5, 6}


def test_what_an_annotator_took_back_is_no_opinion(session):
    label(session, 3, "left", annotator="anna", window="a")
    label(session, 3, "right", annotator="ben", window="b", seen=session.row(3)["revision"])
    assert session.status()["disputed"] == 1
    session.undo("b")
    assert (session.status()["disputed"], session.status()["agreement"]) == (0, [])
    assert session.label_of(3) == "left"


@pytest.mark.parametrize("name", ["a" * 101, "a\nb", 7, None])
def test_names_of_annotators_that_cannot_be_shown_are_refused(session, name):
    with pytest.raises(ValueError, match="annotator"):
        label(session, 3, annotator=name)


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


def test_random_rows_stay_random_after_export_and_import(session, project):
    label(session, 4, "left")
    label(session, 5, "right", chosen_by="suggest")
    label(session, 4, "right", seen=session.store.last("r4").revision, chosen_by="review")  # a correction
    rows = import_rows(export_rows(session.labeled_rows(), "csv"), "labels.csv", session.ids)
    other = LabelingSession(project, LabelStore(project.with_name("other.sqlite")), learn=False)
    assert other.add_rows(rows) == 2
    assert other.store.random_items == session.store.random_items == {"r4"}
    other.close()


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


def test_rough_shares_are_written_to_the_project_file_and_can_be_taken_back(session, project):
    session.add_class("right")
    assert session.status()["shares"] == {}
    session.set_shares({"right": [0.1, 0.3]})
    assert session.status()["shares"] == {"right": (0.1, 0.3)}
    assert session.project.settings.model["class_prior"] == {"right": (0.1, 0.3)}
    reopened = LabelingSession(project, LabelStore(project.with_name("labels.sqlite")), learn=False)
    assert reopened.status()["shares"] == {"right": (0.1, 0.3)}
    reopened.close()
    with pytest.raises(ValueError, match="There is no class 'up'"):
        session.set_shares({"up": [0.1, 0.3]})
    session.set_shares({})
    assert session.status()["shares"] == {}
    assert "\nclass_prior" not in project.read_text()


def test_a_row_whose_label_was_taken_back_is_not_offered_to_another_window(session):
    row = session.next_row("suggest", "a").row
    label(session, row, window="a")
    after = session.next_row("suggest", "a", skip=[row]).row  # which window "a" shows when it takes the label back
    session.undo("a")
    offered = []
    while (choice := session.next_row("suggest", "b", skip=offered)) is not None:
        offered.append(choice.row)
    assert sorted(offered) == [other for other in range(1, N_ROWS) if other not in (row, after)]
