"""The page: structure, numbers, escaping, and incomplete results."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from statistics import fmean, stdev

import click
import pytest

from experiments.commands import main
from experiments.experiment import FIGURE_2, TABLE_1
from experiments.report import report_page, write_page
from experiments.report.page import reproduce_command
from tests.experiments.report.factory import curve_rows, failed_row, table_rows
from tests.pages.parsed import parse, table_rows_of

SECTIONS = [
    "claims",
    "figure1",
    "table1",
    "figure2",
    "annealing",
    "calibration",
    "significance",
    "cost",
    "printed",
    "failures",
    "reproduce",
]


@pytest.fixture(scope="module")
def rows():
    return [*table_rows(5), *curve_rows(3), failed_row()]


@pytest.fixture(scope="module")
def page(rows):
    return parse(report_page(rows))


def test_sections_and_navigation(page):
    assert [section.attributes["id"] for section in page.all("section")] == SECTIONS
    assert [link.attributes["href"] for link in page.one("nav").all("a")] == [f"#{name}" for name in SECTIONS]
    assert len(page.all("h1")) == 1


def test_first_screen_says_what_was_found(page, rows):
    header = page.one("header")
    table = table_rows_of(header.one("table", class_="leads"))
    titles = ("Simulated footsteps, 50", "SensIT vehicles, 50", "WebKB course pages, 15", "Internet Ads, 50")
    assert list(table) == [f"{title} labels, {protocol}" for title in titles for protocol in ("defaults", "tuned")]
    accuracies = [
        row.accuracy
        for row in rows
        if (row.spec, row.dataset, row.method, row.protocol) == ("table1", "webkb", "CMV-MED", "defaults")
    ]
    printed, completed, ours = table["WebKB course pages, 15 labels, defaults"]
    assert ours.startswith(f"{100 * fmean(accuracies):.1f} (+")
    assert ours.endswith("5 splits")
    assert printed.endswith("5 splits")
    assert completed == "–"
    links = {link.attributes["href"]: link.text for link in header.one("div", class_="found").all("a")}
    claims = page.one("section", id="claims").one("ol").children
    headings = {f"#{item.attributes['id']}": item.one("h3").text for item in claims if not isinstance(item, str)}
    assert links == headings
    assert "not shown" not in header.text


def test_page_has_no_external_resources(page):
    assert not page.all("script")
    assert not page.all("img")
    assert [link.attributes["href"] for link in page.all("link")] == ["data:,"]
    style = page.one("style").raw_text
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_ids_are_unique(page):
    names = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
    assert len(names) == len(set(names))


def test_every_chart_has_a_text_alternative(page):
    charts = page.all("svg", role="img")
    assert len(charts) == 2 + 4 + 2 + 4 + 8 + 8  # projection, accuracy, labels, annealing, calibration, significance
    for chart in charts:
        title, desc = chart.attributes["aria-labelledby"].split()
        assert chart.one("title", id=title).text
        assert chart.one("desc", id=desc).text
    for other in page.all("svg"):
        assert other.attributes.get("role") == "img" or other.attributes.get("aria-hidden") == "true"


def test_every_table_has_caption_and_scopes(page):
    tables = page.all("table")
    assert tables
    for table in tables:
        assert table.one("caption").text
        assert all(cell.attributes.get("scope") in ("col", "row") for cell in table.all("th"))
        widths = {len(row.all("td")) + len(row.all("th")) for row in table.all("tr")}
        assert len(widths) == 1


def shown(values):
    return f"{100 * fmean(values):.1f} ± {100 * stdev(values):.1f}"


def check_accuracy(page, rows):
    """Every number of Table 1 is the mean or deviation of its rows."""
    for table in page.one("section", id="table1").all("table"):
        lines = table_rows_of(table)
        dataset = table.attributes["data-dataset"]
        methods = {row.method for row in rows if row.spec == "table1" and row.dataset == dataset}
        assert set(lines) == methods | {"majority class"}
        for method in methods:
            for column, protocol in enumerate(["defaults", "tuned"]):
                values = [
                    row.accuracy
                    for row in rows
                    if (row.spec, row.dataset, row.method, row.protocol) == ("table1", dataset, method, protocol)
                    and row.status == "done"
                ]
                assert lines[method][1 + column] == shown(values)


def test_table_1_contains_the_means_of_the_rows(page, rows):
    assert len(page.one("section", id="table1").all("table")) == 4
    check_accuracy(page, rows)


def test_changed_row_is_detected(page, rows):
    first = next(k for k, row in enumerate(rows) if row.spec == "table1")
    changed = [*rows[:first], replace(rows[first], accuracy=rows[first].accuracy - 0.1), *rows[first + 1 :]]
    with pytest.raises(AssertionError):
        check_accuracy(page, changed)


def test_table_1_shows_the_paper_and_the_majority(page):
    webkb = page.one("table", **{"data-dataset": "webkb"})
    lines = table_rows_of(webkb)
    assert lines["CMV-MED"][-1] == "91.7 ± 5.8"
    assert lines["MED, view page"][-1] == "76.6 ± 10.2"
    assert lines["MED, view link"][-1] == "77.1 ± 10.1"
    assert lines["CoRLS"][-1] == "–"
    assert lines["majority class"] == ["–", "78.5", "78.5", "–"]
    stand_in = page.one("table", **{"data-dataset": "footsteps"})
    assert "paper" not in [head.text for head in stand_in.one("thead").all("th")]


def test_best_mean_is_bold(page):
    bold = page.one("table", **{"data-dataset": "sensit"}).all("strong")
    means = table_rows_of(page.one("table", **{"data-dataset": "sensit"}))
    best = [
        max((line[k] for name, line in means.items() if name != "majority class"), key=lambda t: float(t.split()[0]))
        for k in (1, 2)
    ]
    assert [node.text for node in bold] == best


def test_every_row_of_table_1_has_its_kernel():
    rows = table_rows(2, ("webkb",), ("defaults",))
    rows = [
        *(replace(row, settings={"kernel": "rbf"}) for row in rows if row.method == "SVM-2K"),
        *(
            replace(row, method="SVM-2K (linear+rbf)", settings={"kernel": "linear+rbf"})
            for row in rows
            if row.method == "SVM-2K"
        ),
        *(row for row in rows if row.method == "CoRLS"),
    ]
    table = parse(report_page(rows)).one("table", **{"data-dataset": "webkb"})
    assert [head.text for head in table.one("thead").all("th")][:2] == ["method", "kernel"]
    kernels = {method: line[0] for method, line in table_rows_of(table).items()}
    assert kernels == {"SVM-2K": "rbf", "SVM-2K (linear+rbf)": "linear+rbf", "CoRLS": "–", "majority class": "–"}


def completed(rows, experiment):
    """The rows, and one row of every method and protocol of the experiment."""
    first = next(row for row in rows if row.spec == experiment.name)
    view = next(row.method for row in rows if row.method.startswith("MED, view "))
    names = [name.replace("MED, each view", view) for name in experiment.methods]
    more = [replace(first, method=name, protocol=protocol) for name in names for protocol in experiment.protocols]
    known = {row.key for row in rows}
    return [*rows, *(row for row in more if row.key not in known)]


def test_failures_are_listed(page):
    lines = table_rows_of(page.one("section", id="failures").one("table"))
    assert lines == {"CoRLS": ["Table 1, Internet Ads, 50 labels, tuned", "3", "LinAlgError: singular matrix"]}


def test_facts_describe_the_run(page, rows):
    facts = {entry.one("dt").text: entry.one("dd").text for entry in page.one("dl").all("div")}
    assert facts["Results"] == f"{len(rows) - 1:,} finished, 1 failed"
    assert facts["Splits"] == "Table 1: 5; Figure 2: 3"
    assert facts["Computed"] == "2026-01-01 to 2026-01-03"
    assert "cmvmed 0.1.0" in facts["Versions"]
    assert facts["Data sets"] == "Simulated footsteps, SensIT vehicles, WebKB course pages and Internet Ads"


def test_commands_reproduce_the_rows(rows):
    rows = completed(completed(rows, TABLE_1), FIGURE_2)
    page = parse(report_page(rows, "my results.sqlite"))
    commands = [node.text for node in page.one("section", id="reproduce").all("pre")]
    assert commands == [
        "python -m experiments table1 --full --splits 5 --results 'my results.sqlite'",
        "python -m experiments figure2 --full --splits 3 --datasets webkb --datasets ads --results 'my results.sqlite'",
        "python -m experiments report --results 'my results.sqlite'",
    ]


def test_commands_name_the_restrictions():
    rows = [row for row in table_rows(2, ("webkb",), ("tuned",)) if row.method in ("CMV-MED", "MED, view page")]
    command = reproduce_command(rows, "table1", "r.sqlite")
    assert command == (
        "python -m experiments table1 --full --splits 2 --datasets webkb --protocol tuned "
        "--methods CMV-MED --methods 'MED, each view' --results r.sqlite"
    )
    other = [replace(row, method="MED, view page (linear+rbf)") for row in rows]
    assert "--methods 'MED, each view (linear+rbf)' --results" in reproduce_command(other, "table1", "r.sqlite")


def test_commands_are_valid():
    rows = [row for row in table_rows(2, ("webkb",), ("tuned",)) if row.method in ("CMV-MED", "SVM-2K")]
    _, _, _, name, *words = shlex.split(reproduce_command(rows, "table1", "r.sqlite"))
    parsed = main.commands[name].make_context(name, list(words)).params
    assert (parsed["splits"], parsed["datasets"], parsed["protocol"]) == (2, ("webkb",), ("tuned",))
    assert parsed["methods"] == ("CMV-MED", "SVM-2K")
    with pytest.raises(click.UsageError):
        main.commands[name].make_context(name, [*words, "--no-such-option"])


MARKUP = "<script>alert('1')</script>&\"<b>"


def test_everything_from_the_rows_is_escaped():
    changes = {"dataset": MARKUP, "method": f"MED, view {MARKUP}", "protocol": MARKUP}
    rows = [replace(row, **changes) for row in table_rows(3, ("webkb",), ("defaults",)) if row.method == "CoRLS"]
    rows += [
        replace(row, dataset=MARKUP, protocol=MARKUP, versions={MARKUP: MARKUP}, finished=MARKUP)
        for row in table_rows(3, ("webkb",), ("defaults",))
    ]
    rows += [
        replace(
            row, annealing=tuple({MARKUP if k == "page" else k: v for k, v in stage.items()} for stage in row.annealing)
        )
        for row in table_rows(2, ("ads",), ("defaults",))
    ]
    rows += [replace(row, dataset=MARKUP, protocol=MARKUP) for row in curve_rows(2, ("webkb",))]
    rows += [failed_row(error=MARKUP, method=MARKUP, spec=MARKUP)]
    text = report_page(rows, MARKUP)
    page = parse(text)
    assert not page.all("script")
    assert not page.all("b")
    assert "<script" not in text
    assert MARKUP in page.one("section", id="failures").text


def test_no_rows_raise():
    with pytest.raises(ValueError, match="python -m experiments table1"):
        report_page([])


BARE = dict.fromkeys(["n_train", "n_test", "majority_rate", "fit_seconds", "log_loss"])
BARE |= {"finished": "", "versions": {}, "annealing": (), "reliability": ()}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([failed_row()], id="only a failure"),
        pytest.param(table_rows(1, ("webkb",), ("defaults",)), id="one split"),
        pytest.param(table_rows(2, ("webkb",), ("tuned",)), id="tuned only"),
        pytest.param([row for row in table_rows(3) if row.method == "MV-MED"], id="without the reference"),
        pytest.param([row for row in table_rows(3) if row.method == "CMV-MED"], id="without baselines"),
        pytest.param(curve_rows(2), id="figure 2 only"),
        pytest.param(curve_rows(1, numbers=(10,)), id="one number of labels"),
        pytest.param([replace(row, **BARE) for row in table_rows(2)], id="bare rows"),
        pytest.param([replace(table_rows(1)[0], method="majority class")], id="majority only"),
    ],
)
def test_incomplete_results_give_a_complete_page(rows):
    page = parse(report_page(rows))
    assert [section.attributes["id"] for section in page.all("section")] == SECTIONS
    for name in SECTIONS[1:7]:
        section = page.one("section", id=name)
        assert section.all("table") or section.all("svg") or "python -m experiments" in section.text


def test_empty_sections_name_the_command():
    page = parse(report_page(table_rows(2, ("webkb",), ("defaults",))))
    assert "python -m experiments figure2" in page.one("section", id="figure2").text
    assert "python -m experiments figure2" in page.one("section", id="claims").text


def test_ranks_appear_with_five_data_sets(rows, page):
    assert "at least five data sets" in page.one("section", id="significance").text
    more = [*rows, *(replace(row, spec="table1", dataset="gauss") for row in table_rows(2, ("webkb",)))]
    more = [row for row in more if not row.method.startswith("MED, view")]
    section = parse(report_page(more)).one("section", id="significance")
    assert "at least five data sets" not in section.text
    assert [node.text for node in section.all("figcaption")]
    assert "Friedman" in section.text


def test_page_is_replaced(tmp_path):
    target = tmp_path / "page.html"
    write_page("first", target)
    write_page("second", target)
    assert target.read_text(encoding="utf-8") == "second"
    assert os.listdir(tmp_path) == ["page.html"]


def test_failed_write_keeps_the_old_page(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    write_page("first", target)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_page("second", target)
    assert target.read_text(encoding="utf-8") == "first"
    assert os.listdir(tmp_path) == ["page.html"]


def test_invalid_paths_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_page("text", tmp_path / "absent" / "page.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_page("text", tmp_path)
