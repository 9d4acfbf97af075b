"""Trained projects for tests of the report: made tables, read and fitted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd

from cmvmed import CMVMED
from cmvmed.workbench import Finding, Project, ProjectTable, init
from cmvmed.workbench.report.model_facts import read_facts

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "quotes": "it's \"quoted\" & 'more'",
    "long": "a_very_long_name_without_a_blank_" * 9,
    "right_to_left": "שלום עולם",
    "override": "abc\u202edcba\u2066",
    "control": "bell\x07 and \x1b[31m",
    "entity": "&lt;b&gt;",
    "template": "{{ 7 * 7 }}{% raw %}",
}


@dataclass(frozen=True)
class Case:
    """What ``write_report`` takes."""

    trained: SimpleNamespace
    table: ProjectTable
    findings: list[Finding]

    @property
    def model(self):
        return self.trained.model

    @property
    def facts(self):
        return read_facts(self.trained.project, self.trained.model, self.table, self.findings)


def fit(project, **parameters):
    """The project read, checked and fitted, without warnings."""
    table = project.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(**(project.model_parameters | parameters)).fit(table.views, table.labels, groups=table.groups)
    return Case(SimpleNamespace(project=project, model=model), table, project.check())


def train(folder, source, **parameters):
    """A project for a file, with what ``init`` guesses."""
    file = folder / "cmvmed.toml"
    file.write_text(init(folder / source, file).text, encoding="utf-8")
    return fit(Project.load(file), **parameters)


def write_activity(folder, n=150, share_labeled=0.4, classes=("walk", "run", "sit"), seed=0):
    """activity.csv: good, dead, weak and doubled sensors, partly absent; few errors."""
    rng = np.random.default_rng(seed)
    y = rng.integers(len(classes), size=n)
    good = rng.normal(size=(len(classes), 4))[y] * 1.5 + rng.normal(size=(n, 4))
    frame = pd.DataFrame(good.round(4), columns=[f"acc_{j}" for j in range(4)])
    for j in range(4):
        frame[f"gyr_{j}"] = (good[:, j] + 0.01 * rng.normal(size=n)).round(4)
    for j in range(3):
        frame[f"noise_{j}"] = rng.normal(size=n).round(4)
    frame["dead_0"], frame["dead_1"] = 1.5, 0.0
    frame.insert(0, "window", [f"w{i:03d}" for i in range(n)])
    frame["label"] = np.where(rng.random(n) < share_labeled, np.array(classes)[y], "")
    frame.loc[5:14, [f"gyr_{j}" for j in range(4)]] = np.nan
    frame.loc[20, "acc_1"] = np.nan
    frame.to_csv(folder / "activity.csv", index=False)


def write_hostile(folder, n=60):
    """hostile.csv and its project: identifiers, classes, columns, views and settings that try to break a page."""
    rng = np.random.default_rng(0)
    names = list(HOSTILE.values())
    y = np.arange(n) % len(names)
    columns = [HOSTILE["script"], HOSTILE["quotes"], HOSTILE["right_to_left"], HOSTILE["long"]]
    centers = 3.0 * rng.normal(size=(len(names), 4))
    frame = pd.DataFrame((centers[y] + rng.normal(size=(n, 4))).round(4), columns=columns)
    frame["id"] = [f"{names[i % len(names)]} {i}" for i in range(n)]
    frame["class"] = [names[k] if i < 30 else "" for i, k in enumerate(y)]
    frame.to_csv(folder / "hostile.csv", index=False)
    views = {HOSTILE["image"]: columns[:2], HOSTILE["long"]: columns[2:]}
    quoted = {name: ", ".join(map(_toml, own)) for name, own in views.items()}
    lines = ["[data]", 'path = "hostile.csv"', 'id = "id"', 'labels = "class"']
    lines += [f"[views.{_toml(name)}]\ncolumns = [{own}]" for name, own in quoted.items()]
    (folder / "cmvmed.toml").write_text("\n".join(lines), encoding="utf-8")
    return Project.load(folder / "cmvmed.toml")


def _toml(text):
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\' else c for c in text)
    return f'"{escaped}"'
