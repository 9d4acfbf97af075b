"""A simulated user of the labeling page: ``python -m benchmarks.labeling --simulate`` writes labeling_user.md.

The user labels, by requests to a running ``cmvmed label``, what the page proposes ("suggest"), or rows at random
("random", which the page offers too). With proposals it waits after every ten labels until the model is up to date. The
sets are the five of the suite with the fewest columns, of each data source the first. A project has at most 250 rows
that may be labeled, and at most as many others, on which accuracy is measured: the user never labels these. Labels end
at 100, or at half of the rows that may be labeled if these are fewer.

The class shares that the model estimates for the rows that are not labeled, the means of their probabilities, are
compared with the true ones by ½ Σ_k |estimated_k - true_k|: with labels of proposed rows, which the file of labels
marks as chosen, with those of random rows, and with those of proposed rows if they are taken for random ones.

Results are kept in a file of JSON lines, so that a run that was stopped goes on where it was.
"""

import argparse
import json
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.active_learning import labels_needed, mean_curve, read
from benchmarks.labeling_client import Client
from benchmarks.provenance import RESULTS, write
from benchmarks.suite.markdown import markdown
from benchmarks.suite.sets import DataSet, load
from benchmarks.suite.splits import draw_rows
from cmvmed.workbench import Project, init

SETS = ("mnist", "racketsports", "scene15", "gas1", "hyd_pump")
MOST_ROWS, MOST_LABELS, BATCH = 250, 100, 10
REPEATS = {"suggest": 1, "random": 3}


@dataclass(frozen=True)
class Job:
    """The rows of a project, those that the user must not label, and the names of all classes."""

    truth: list[str]
    names: list[str]
    withheld: list[int]

    @property
    def most(self) -> int:
        """The most labels."""
        return min(MOST_LABELS, (len(self.truth) - len(self.withheld)) // 2)


def write_project(folder: Path, data: DataSet, split: int, repeat: int) -> Job:
    """A project of one array per view, whose rows are in random order and without labels."""
    seed = zlib.crc32(data.name.encode()), split
    train, test = draw_rows(data, MOST_ROWS, np.random.default_rng(seed))
    rows = np.concatenate([train, test[:MOST_ROWS]])
    is_test = np.arange(rows.size) >= train.size
    order = np.random.default_rng([*seed, repeat]).permutation(rows.size)
    rows, withheld = rows[order], np.flatnonzero(is_test[order])
    np.savez(folder / "rows.npz", **{name: data.X[rows][:, columns] for name, columns in data.views.items()})
    file = folder / "cmvmed.toml"
    file.write_text(init(folder / "rows.npz", file).text)
    names = [f"class {k:02d}" for k in range(data.counts.size)]
    return Job([names[k] for k in data.y[rows]], names, withheld.tolist())


def simulate(data: DataSet, way: str, split: int, repeat: int) -> dict[str, Any]:
    """What one user reaches."""
    with tempfile.TemporaryDirectory() as name:
        job = write_project(Path(name), data, split, repeat)
        with Client(Path(name)) as client:
            client.wait()  # for the rows that cover the data
            curve = label_rows(client, job, way)
            labeled, shares = class_shares(client, job)
        drawn, as_random = shares_as_random(Path(name), job, labeled)
    true = of_classes([name for row, name in enumerate(job.truth) if row not in labeled], job.names)
    own = {"labels": distance(of_classes([job.truth[row] for row in labeled], job.names), true)}
    own |= {"model": distance(shares, true), "as_random": distance(as_random, true)}
    return {"rows": len(job.truth), "classes": len(job.names), "curve": curve, "drawn": drawn, "shares": own}


def label_rows(client: Client, job: Job, way: str) -> list[dict[str, float]]:
    """Numbers of labels, and the accuracy on the rows that are never labeled."""
    curve: list[dict[str, float]] = []
    for count in range(1, job.most + 1):
        row = client.next_row(way, job.withheld)
        client.label(row, job.truth[row["row"]])
        if (way == "suggest" and count % BATCH == 0) or count == job.most:
            status = client.wait()
            if status["fitted_labels"] == count:  # else there is one class only
                correct = [predicted(client, row) == job.truth[row] for row in job.withheld]
                curve.append({"labels": count, "accuracy": float(np.mean(correct))})
    return curve


def predicted(client: Client, row: int) -> str:
    """The class that the page shows as the most probable one."""
    opinions = client.ask(f"/api/rows/{row}")["opinions"]
    return str(opinions["classes"][int(np.argmax(opinions["consensus"]))])


def class_shares(client: Client, job: Job) -> tuple[set[int], Any]:
    """The labeled rows, and the mean probability of each class over the others, by what the page shows."""
    labeled, found = set(), []
    for number in range(len(job.truth)):
        row = client.ask(f"/api/rows/{number}")
        if row["label"] is not None:
            labeled.add(number)
        else:
            by_name = dict(zip(row["opinions"]["classes"], row["opinions"]["consensus"], strict=True))
            found.append([by_name.get(name, 0.0) for name in job.names])
    return labeled, np.mean(found, axis=0)


def shares_as_random(folder: Path, job: Job, labeled: set[int]) -> tuple[str, Any]:
    """How the project says that its labels were drawn, and the shares of a model that takes them for random ones."""
    project = Project.load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = project.read()
        model = project.train(table, labels_drawn="random").model
    others = [row for row in range(len(job.truth)) if row not in labeled]
    p = model.predict_proba({name: view[others] for name, view in table.views.items()}).mean(axis=0)
    by_name = dict(zip(map(str, model.classes_), p, strict=True))
    return table.labels_drawn, np.array([by_name.get(name, 0.0) for name in job.names])


def of_classes(labels: Sequence[str], names: Sequence[str]) -> Any:
    return np.array([labels.count(name) for name in names]) / len(labels)


def distance(p: Any, q: Any) -> float:
    """½ Σ_k |p_k - q_k|."""
    return float(0.5 * np.abs(p - q).sum())


def run(sets: Sequence[str], n_splits: int, path: Path) -> None:
    """Work off what is not in the file yet."""
    done = {(row["set"], row["split"], row["way"], row["repeat"]) for row in read(path)}
    for split in range(n_splits):
        for name in sets:
            for way, repeats in REPEATS.items():
                for repeat in range(repeats):
                    if (name, split, way, repeat) not in done:
                        found = simulate(load(name), way, split, repeat)
                        key = {"set": name, "split": split, "way": way, "repeat": repeat}
                        with path.open("a") as file:
                            file.write(json.dumps(key | found) + "\n")


def report(rows: Sequence[dict[str, Any]]) -> str:
    """By set, labels that are needed for the accuracy of the most random ones, and how far class shares are off."""
    head = ["set", "rows", "classes", "random labels", "their accuracy %", "proposed labels", "proposed / random"]
    head += ["shares of classes: proposed", "random", "proposed, taken for random", "among the proposed labels"]
    lines, ratios, all_shares = [], [], []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = {way: [row for row in rows if row["set"] == name and row["way"] == way] for way in REPEATS}
        if not all(own.values()):
            continue
        curves = {way: mean_curve(own[way], "accuracy") for way in own}
        n, target = int(curves["random"][0][-1]), float(curves["random"][1][-1])
        needed = labels_needed(*curves["suggest"], target)
        shares = [mean_share(own, *which) for which in SHARES]
        ratios.append(min(needed / n, 1.0))
        all_shares.append(shares)
        facts = [name, str(own["random"][0]["rows"]), str(own["random"][0]["classes"]), str(n), f"{100 * target:.1f}"]
        facts += [f"{needed:.0f}" if needed < np.inf else f"> {n}", f"{ratios[-1]:.2f}"]
        lines.append([*facts, *(f"{100 * value:.1f}" for value in shares)])
    means = [f"{100 * value:.1f}" for value in np.mean(all_shares, axis=0)]
    lines.append(["**mean**", "", "", "", "", "", f"{np.mean(ratios):.2f}", *means])
    return markdown([head, *lines]) + "\n\n" + marked(rows)


SHARES = [("suggest", "model"), ("random", "model"), ("suggest", "as_random"), ("suggest", "labels")]


def mean_share(own: dict[str, list[dict[str, Any]]], way: str, which: str) -> float:
    return float(np.mean([row["shares"][which] for row in own[way]]))


def marked(rows: Sequence[dict[str, Any]]) -> str:
    """How labels are marked in the file of labels."""
    drawn = {way: sorted({row["drawn"] for row in rows if row["way"] == way}) for way in REPEATS}
    said = ", ".join(f"{' or '.join(values)} after {way}" for way, values in drawn.items())
    runs = ", ".join(
        f"{len({(row['split'], row['repeat']) for row in rows if row['way'] == way})} of {way}" for way in REPEATS
    )
    return f"Runs per set: {runs}. `labels_drawn` of the labels: {said}."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--simulate", action="store_true", help="a simulated user labels what the page proposes")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("labeling_user.jsonl"), help="where runs are kept")


def simulate_and_report(arguments: argparse.Namespace) -> None:
    run(arguments.sets, arguments.splits, arguments.results)
    text = report([row for row in read(arguments.results) if row["set"] in arguments.sets])
    print(text)
    if arguments.sets == list(SETS):
        write(RESULTS / "labeling_user.md", text)
