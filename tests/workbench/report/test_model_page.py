"""The report of a model: structure, numbers, accessibility, hostile names, files, and models of which little is known."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import cmvmed
from cmvmed import CMVMED
from cmvmed.pages.formatting import share_interval
from cmvmed.workbench import Finding, Project
from cmvmed.workbench.report import model_page, write_report
from cmvmed.workbench.report.verdict import UNKNOWN
from tests.pages.parsed import parse, table_rows_of
from tests.workbench.jobs import write_recordings, write_tickets, write_windows
from tests.workbench.report.trained import HOSTILE, fit, train, write_activity

SECTIONS = [
    "data",
    "findings",
    "comparison",
    "confusion",
    "calibration",
    "views",
    "map",
    "unsure",
    "labels",
    "settings",
]


def page_of(case, **options):
    return parse(model_page(case.trained, case.table, case.findings, **{"with_learning_curve": False, **options}))


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


class TestStructure:
    def test_sections_and_navigation(self, page):
        assert [section.attributes["id"] for section in page.all("section")] == SECTIONS
        assert [link.attributes["href"] for link in page.one("nav").all("a")] == [f"#{name}" for name in SECTIONS]

    def test_landmarks_language_and_title(self, page):
        assert page.one("html").attributes["lang"] == "en"
        assert "activity.csv" in page.one("title").text if len(page.all("title")) == 1 else True
        for landmark in ("header", "main", "footer", "nav"):
            assert len(page.all(landmark)) == 1
        assert page.one("a", class_="skip").attributes["href"] == "#data"

    def test_headings_are_in_order(self, page):
        levels = [int(node.tag[1]) for node in page.walk() if re.fullmatch("h[1-6]", node.tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))

    def test_tables_have_captions_scopes_and_equal_rows(self, page):
        tables = page.all("table")
        assert len(tables) >= 5
        for table in tables:
            assert table.one("caption").text
            assert all(cell.attributes.get("scope") in ("col", "row") for cell in table.all("th"))
            assert len({len(row.all("td")) + len(row.all("th")) for row in table.all("tr")}) == 1
        for box in page.all("div", class_="box"):
            assert box.attributes["role"] == "region"
            assert box.attributes["aria-label"]

    def test_charts_have_text_alternatives(self, page):
        charts = page.all("svg", role="img")
        assert {chart.attributes["id"] for chart in charts} >= {"figure-accuracy", "figure-views", "figure-map"}
        for chart in charts:
            title, description = chart.attributes["aria-labelledby"].split()
            assert chart.one("title", id=title).text
            assert chart.one("desc", id=description).text
        for other in page.all("svg"):
            assert other.attributes.get("role") == "img" or other.attributes.get("aria-hidden") == "true"

    def test_nothing_is_loaded(self, page):
        assert not page.all("script")
        assert not page.all("img")
        assert [link.attributes["href"] for link in page.all("link")] == ["data:,"]
        policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
        assert policy.startswith("default-src 'none'")
        style = page.one("style").raw_text
        assert "url(" not in style
        assert "@import" not in style
        assert "prefers-color-scheme: dark" in style
        assert "@media print" in style

    def test_ids_are_unique(self, page):
        names = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
        assert len(names) == len(set(names))


class TestNumbers:
    def test_first_screen_has_the_estimate_and_the_baselines(self, activity, page):
        estimate = activity.model.accuracy_estimate()
        text = plain(page.one("header").text)
        for value in (estimate.mean, estimate.low, estimate.high, estimate.held_out, estimate.labels_only):
            assert percent(value) in text
        assert percent(activity.model.class_prior_.max()) in text
        assert estimate.effect() in text

    def test_labels_by_class(self, activity, page):
        lines = table_rows_of(page.one("table", class_="classes"))
        labels = [label for label in activity.table.labels if label is not None]
        for name in ("walk", "run", "sit"):
            share = percent(labels.count(name) / len(labels))
            k = list(activity.model.classes_).index(name)
            found = activity.model.share_sensitivity_
            plausible = f"{100 * found['low'][k]:.0f} to {100 * found['high'][k]:.0f} %"
            prior = percent(activity.model.class_prior_[k])
            assert lines[name] == [str(labels.count(name)), share, prior, plausible]

    def test_how_much_depends_on_the_class_shares(self, activity, page):
        found, estimate = activity.model.share_sensitivity_, activity.model.accuracy_estimate()
        text = plain(page.one("section", id="data").text)
        assert f"The class of {100 * found['changed']:.0f} % of the unlabeled rows is another one" in text
        assert f"{100 * estimate.low:.0f} to {100 * estimate.high:.0f} % for the estimated shares" in text
        low, high = estimate.low + found["accuracy_low"], min(estimate.high + found["accuracy_high"], 1.0)
        assert f"is {100 * low:.0f} to {100 * high:.0f} % for all plausible ones" in text
        line = next(code.text for code in page.all("code") if code.text.startswith("class_prior"))
        given = tomllib.loads(line)["class_prior"]
        assert list(given) == list(activity.model.classes_)
        np.testing.assert_allclose(list(given.values()), np.transpose([found["low"], found["high"]]), atol=0.01)

    def test_views_columns_and_gaps(self, page):
        lines = table_rows_of(page.one("table", class_="views"))
        assert lines["acc"][1:] == ["4", "0", "1"]
        assert lines["gyr"][1:] == ["4", "10 (7 %)", "0"]
        assert "acc_0, acc_1, acc_2, acc_3" in lines["acc"][0]

    def check_confusion(self, page, model, labels):
        """Every cell is the number of held-out rows with this label and this most probable class."""
        lines = table_rows_of(page.one("table", class_="confusion"))
        predicted = model.classes_[model.held_out_proba_.argmax(axis=1)]
        truth = labels[model.held_out_rows_]
        for label in model.classes_:
            own = truth == label
            cells = [str(int((own & (predicted == other)).sum())) for other in model.classes_]
            assert lines[label][: len(cells)] == cells
            low, high = share_interval(int((predicted[own] == label).sum()), int(own.sum()))
            assert plain(lines[label][-2]) == (
                f"{percent(np.mean(predicted[own] == label), 0)} ({100 * low:.0f} to {100 * high:.0f})"
            )
        total = sum(int(lines[label][i]) for i, label in enumerate(model.classes_))
        assert total / len(truth) == pytest.approx(model.accuracy_estimate().held_out)

    def test_confusion_is_that_of_the_held_out_labels(self, activity, page):
        self.check_confusion(page, activity.model, activity.table.labels)

    def test_another_label_is_detected(self, activity, page):
        labels = activity.table.labels.copy()
        first = activity.model.held_out_rows_[0]
        labels[first] = next(name for name in activity.model.classes_ if name != labels[first])
        with pytest.raises(AssertionError):
            self.check_confusion(page, activity.model, labels)

    def test_views_alone(self, activity, page):
        lines = table_rows_of(page.one("table", class_="sensors"))
        members = activity.model.members_
        for name, weight in zip(activity.model.view_names_, activity.model.view_weights_, strict=True):
            key = next(line for line in lines if line.split()[0] == name)
            accuracy = members["accuracy"][members["name"].index(f"view {name}")]
            assert [plain(cell) for cell in lines[key][:2]] == [percent(accuracy), percent(weight, 0)]

    def test_views_that_are_lost(self, activity, page):
        """Unlabeled rows are predicted again without the view."""
        lines = table_rows_of(page.one("table", class_="sensors"))
        unlabeled = np.array([label is None for label in activity.table.labels])
        rows = np.flatnonzero(unlabeled & ~np.isnan(activity.table.views["gyr"]).all(axis=1))
        X = {name: view[rows] for name, view in activity.table.views.items()}
        before, after = (activity.model.predict_proba(X | new) for new in ({}, {"gyr": np.full_like(X["gyr"], np.nan)}))
        same = np.mean(before.argmax(axis=1) == after.argmax(axis=1))
        key = next(line for line in lines if line.split()[0] == "gyr")
        assert plain(lines[key][-1]) == f"{percent(same, 0)} / {percent(after.max(axis=1).mean(), 0)}"

    def test_disagreement_of_each_pair_is_shown_once(self, activity, page):
        lines = table_rows_of(page.one("table", class_="pairs"))
        found = activity.model.disagreement_
        rates = dict(zip(zip(found["view"], found["other"], strict=True), found["rate"], strict=True))
        names = activity.model.view_names_
        expected = {f"{a} and {b}": rates[a, b] for i, a in enumerate(names) for b in names[i + 1 :]}
        assert {key: plain(line[0]) for key, line in lines.items()} == {
            key: percent(rate) for key, rate in expected.items()
        }

    def test_least_sure_rows_are_those_with_the_smallest_probability(self, activity, page):
        p = activity.model.label_distributions_.max(axis=1)
        unlabeled = [i for i, label in enumerate(activity.table.labels) if label is None]
        expected = [activity.table.ids[i] for i in sorted(unlabeled, key=lambda i: p[i]) if p[i] < 0.95][:8]
        assert [node.text for node in page.one("ul", class_="rows").all("h3")] == expected

    def test_findings_are_listed(self, activity, page):
        items = page.one("section", id="findings").all("li")
        assert [item.text.split(" ", 1) for item in items] == [[f.level, f.message] for f in activity.findings]
        assert any(finding.code == "constant_column" for finding in activity.findings)


class TestDifferentModels:
    def test_learning_curve_and_determinism(self, tmp_path):
        """The same model gives the same bytes, also after it was saved and loaded."""
        write_activity(tmp_path, n=40, classes=("walk", "run"))
        case = train(tmp_path, "activity.csv", n_stages=2)
        first = model_page(case.trained, case.table, case.findings, command="cmvmed train")
        cmvmed.save(case.model, tmp_path / "model.cmvmed")
        loaded = SimpleNamespace(project=case.trained.project, model=cmvmed.load(tmp_path / "model.cmvmed"))
        assert model_page(loaded, case.table, case.findings, command="cmvmed train") == first
        labels = parse(first).one("section", id="labels")
        assert "forecast" in labels.one("table").text
        assert labels.all("svg", id="figure-learning")

    def test_text_and_categories(self, tmp_path):
        write_tickets(tmp_path)
        case = train(tmp_path, "tickets.csv", n_stages=2)
        page = page_of(replace(case, table=replace(case.table, messages=("Decimal commas were assumed.",))))
        assert "Decimal commas were assumed." in page.one("section", id="data").text
        assert page.all("svg", id="figure-map")
        assert table_rows_of(page.one("table", class_="views"))["comment"][2] == "11 (9 %)"

    def test_few_labels_in_groups(self, tmp_path):
        write_windows(tmp_path)
        case = train(tmp_path, "windows.csv", n_stages=2)
        page = page_of(case)
        assert "Probably between" in page.one("h1").text
        assert "too few labels to be sure" in page.one("header").text
        assert "rows of new groups (subject)" in page.one("header").text
        assert "more rows" in page.one("div", class_="next").text
        lines = table_rows_of(page.one("table", class_="groups"))
        subjects = case.table.groups.astype(str)
        right = case.facts.held_out.is_right
        for name, (n_rows, n_labels, n_held_out, correct) in lines.items():
            out = subjects[case.facts.held_out.rows] == name
            assert int(n_rows) == (subjects == name).sum()
            assert int(n_labels) == sum(label is not None for label in case.table.labels[subjects == name])
            assert int(n_held_out) == out.sum()
            assert plain(correct).partition(" (")[0] == (percent(right[out].mean(), 0) if out.any() else "–")

    def test_sound_has_signals(self, tmp_path):
        write_recordings(tmp_path)
        case = train(tmp_path, "recordings", n_stages=2)
        unsure = np.full_like(case.model.label_distributions_, 0.5)
        case.model.label_distributions_ = unsure
        page = page_of(case)
        signals = page.all("svg", class_="sparkline")
        assert len(signals) == 2 * 6  # two microphones, six unlabeled events
        assert "2,400 samples" in signals[0].text
        rows = case.trained.project.rows()
        shutil.rmtree(tmp_path / "recordings")
        assert not page_of(case).all("svg", class_="sparkline")  # the files are gone, the page is not
        assert table_rows_of(page_of(case, rows=rows).one("table", class_="views"))["mic_b"][-1] == "0"

    def test_series_have_signals(self, tmp_path):
        rng = np.random.default_rng(0)
        y = np.arange(40) % 2
        waves = rng.normal(size=(40, 2, 64)) + y[:, None, None]
        labels = np.where(np.arange(40) < 12, np.array(["low", "high"])[y], "")
        np.savez(tmp_path / "series.npz", signal=waves, label=labels)
        case = train(tmp_path, "series.npz", n_stages=2)
        case.model.label_distributions_ = np.full_like(case.model.label_distributions_, 0.5)
        page = page_of(case)
        assert len(page.all("svg", class_="sparkline")) == 2 * 8

    def test_without_held_out_labels(self, tmp_path):
        write_activity(tmp_path, n=60)
        page = page_of(train(tmp_path, "activity.csv", members=None, n_stages=2))
        assert page.one("h1").text == UNKNOWN
        assert "No labels were held out" in page.one("header").text
        assert not page.all("table", class_="confusion")
        assert not page.all("svg", id="figure-accuracy")

    def test_one_label_per_class(self, tmp_path):
        rng = np.random.default_rng(0)
        lines = [f"{i},{i % 2 + 0.1 * rng.normal():.3f},{'ab'[i % 2] if i < 2 else ''}" for i in range(40)]
        (tmp_path / "few.csv").write_text("\n".join(["id,value,label", *lines]), encoding="utf-8")
        page = page_of(train(tmp_path, "few.csv", n_stages=2))
        assert page.one("h1").text == UNKNOWN
        assert "No class has two labels" in page.one("header").text
        assert "nothing can be compared" in page.one("section", id="comparison").text

    def test_one_view_and_one_column(self, tmp_path):
        rng = np.random.default_rng(0)
        lines = [f"{i},{i % 2 + rng.normal():.3f},{'ab'[i % 2] if i < 20 else ''}" for i in range(50)]
        (tmp_path / "one.csv").write_text("\n".join(["id,value,label", *lines]), encoding="utf-8")
        page = page_of(train(tmp_path, "one.csv", n_stages=2))
        assert "A map needs" in page.one("section", id="map").text
        assert not page.all("table", class_="pairs")

    def test_all_rows_labeled(self, tmp_path):
        write_activity(tmp_path, n=40, share_labeled=1.0)
        page = page_of(train(tmp_path, "activity.csv", n_stages=2), with_learning_curve=True)
        assert "There are none" in page.one("section", id="unsure").text
        assert "forecast" in page.one("section", id="labels").one("table").text

    def test_many_classes(self, tmp_path):
        write_activity(tmp_path, n=200, share_labeled=0.6, classes=tuple(f"class {i:02d}" for i in range(14)))
        page = page_of(train(tmp_path, "activity.csv", n_stages=2))
        assert len(table_rows_of(page.one("table", class_="confusion"))) == 12
        assert "2 classes with fewer labels are not shown" in page.one("section", id="confusion").text
        assert [item.text for item in page.one("section", id="map").all("li")][-1] == "7 other classes"

    def test_distributions_that_were_not_kept(self, activity):
        """A fit beyond the memory limit has no label_distributions_; the map and the list use predictions."""
        model = CMVMED()
        left_out = ("label_distributions_", "transduction_")
        model.__dict__.update({name: value for name, value in vars(activity.model).items() if name not in left_out})
        page = page_of(replace(activity, trained=SimpleNamespace(project=activity.trained.project, model=model)))
        assert page.all("svg", id="figure-map")


class TestHostileNames:
    def test_nothing_becomes_markup(self, hostile):
        page = page_of(hostile, command="<script>alert(2)</script>")
        assert not page.all("script")
        assert not page.all("img")
        assert not page.all("b")
        for node in page.walk():
            assert not any(name.startswith("on") for name in node.attributes)
        assert page.one("pre").text == "<script>alert(2)</script>"
        ids = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
        assert len(ids) == len(set(ids))

    def test_names_are_shown_as_they_are(self, hostile):
        lines = table_rows_of(page_of(hostile).one("table", class_="classes"))
        for name in ("script", "quotes", "entity", "template", "image"):
            assert HOSTILE[name] in lines
        assert any(key.startswith("a_very_long") and "…" in key and len(key) <= 48 for key in lines)
        assert f"\u2068{HOSTILE['right_to_left']}\u2069" in lines  # isolated from what stands around it
        assert "abc\ufffddcba\ufffd" in lines
        assert "bell\ufffd and \ufffd[31m" in lines

    def test_findings_and_messages_are_text(self, hostile):
        finding = Finding("error", "marker", "The label '<script>alert(3)</script>' \x00 \u202e looks wrong.")
        table = replace(hostile.table, messages=("<img src=x onerror=alert(4)>",))
        text = model_page(hostile.trained, table, [finding], with_learning_curve=False)
        page = parse(text)
        assert not page.all("script")
        assert not page.all("img")
        assert "<script>alert(3)</script>" in page.one("div", class_="next").text
        assert "\x00" not in text
        assert "\u202e" not in text
        text.encode("utf-8")

    def test_lone_surrogates_can_be_written(self, hostile, tmp_path):
        table = replace(hostile.table, messages=("\ud83d half",))
        write_report(tmp_path / "r.html", hostile.trained, table, [], with_learning_curve=False)
        assert "\ufffd half" in (tmp_path / "r.html").read_text(encoding="utf-8")


class TestFiles:
    def write(self, case, path, **options):
        write_report(path, case.trained, case.table, case.findings, with_learning_curve=False, **options)

    def test_an_existing_file_is_refused_and_kept(self, activity, tmp_path):
        path = tmp_path / "report.html"
        path.write_text("mine", encoding="utf-8")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            self.write(activity, path)
        assert path.read_text(encoding="utf-8") == "mine"
        self.write(activity, path, overwrite=True)
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
        assert os.listdir(tmp_path) == ["report.html"]

    def test_folders(self, activity, tmp_path):
        with pytest.raises(FileNotFoundError, match="does not exist"):
            self.write(activity, tmp_path / "absent" / "report.html")
        with pytest.raises(IsADirectoryError, match="is a folder"):
            self.write(activity, tmp_path)

    def test_nothing_is_left_behind_after_an_error(self, activity, tmp_path):
        with pytest.raises(ValueError, match="149"):
            self.write(replace(activity, table=first_rows(activity.table, 149)), tmp_path / "report.html")
        assert os.listdir(tmp_path) == []


def first_rows(table, n):
    views = {name: matrix[:n] for name, matrix in table.views.items()}
    return replace(table, ids=table.ids[:n], views=views, labels=table.labels[:n])


class TestTablesOfOtherRows:
    def test_other_views(self, activity):
        table = replace(activity.table, views={"other": activity.table.views["acc"]})
        with pytest.raises(ValueError, match="views"):
            page_of(replace(activity, table=table))

    def test_other_classes(self, activity):
        labels = activity.table.labels.copy()
        labels[activity.model.held_out_rows_[0]] = "swim"
        with pytest.raises(ValueError, match="swim"):
            page_of(replace(activity, table=replace(activity.table, labels=labels)))

    def test_labels_that_are_gone(self, activity):
        labels = activity.table.labels.copy()
        labels[activity.model.held_out_rows_[0]] = None
        with pytest.raises(ValueError, match="lacks labels"):
            page_of(replace(activity, table=replace(activity.table, labels=labels)))

    def test_changed_files_are_not_shown(self, tmp_path):
        """Gaps are counted in the files only if their rows are still those of the table."""
        write_activity(tmp_path, n=60)
        case = train(tmp_path, "activity.csv")
        write_activity(tmp_path, n=61)
        assert case.facts.raw is None
        assert table_rows_of(page_of(case).one("table", class_="views"))["acc"][-1] == "–"


def test_settings_and_command(tmp_path):
    write_activity(tmp_path, n=60)
    lines = ["[data]", 'path = "activity.csv"', 'id = "window"', 'labels = "label"', 'labels_drawn = "random"']
    lines += ['[views.a]\ncolumns = "acc_*"', '[views.g]\ncolumns = "gyr_*"', "[model]\ntemperature = 0.3"]
    (tmp_path / "cmvmed.toml").write_text("\n".join(lines), encoding="utf-8")
    case = fit(Project.load(tmp_path / "cmvmed.toml"))
    section = page_of(case, command="cmvmed train --force").one("section", id="settings")
    settings = table_rows_of(section.one("table"))
    assert settings["[data] labels_drawn"] == ["random"]
    assert settings["[views] a"] == ["acc_*"]
    assert settings["[model] temperature"] == ["0.3"]
    assert "[model] gamma" not in settings
    assert section.one("pre").text == "cmvmed train --force"
    assert f"cmvmed {cmvmed.__version__}" in section.text
    assert str(tmp_path) not in model_page(case.trained, case.table, case.findings, with_learning_curve=False)
