"""Two persons label at the page at the same time, each in a browser of their own: no label is lost or taken for another.

They press the keys of the classes, take labels back, and look up rows that the other one may have labeled. Each label that
a page says is saved is then in the file, by the person who gave it, and nothing else is.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults.campaign import HELD, SKIPPED, Fault

CASES = {"ci": 1, "nightly": 20}
PERSONS = ("Ann", "Ben")
CLASSES = ("crawl", "walk", "run")
N_ROWS = 600


@dataclass(frozen=True)
class Case:
    """How many labels each person gives, and how often they take one back."""

    seed: int = 0
    n_labels: int = 5
    share_undone: float = 0.0

    @property
    def group(self) -> str:
        """The line of the table."""
        return f"{2 * self.n_labels} labels"


def draw(rng: np.random.Generator, number: int) -> Case:
    """Persons give 250 labels each."""
    return Case(seed=int(rng.integers(2**31)), n_labels=250, share_undone=float(rng.choice([0.0, 0.05, 0.2])))


def check(case: Case) -> str:
    """Label in two browsers, and compare the file with what the pages said."""
    try:
        from tests.labeling.driven import serving
        from tests.pages.browser import CHROMIUM, DRIVER
    except ImportError:
        return SKIPPED
    if not (CHROMIUM and DRIVER):
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, np.random.default_rng(case.seed))
        with serving(folder) as server, ThreadPoolExecutor(2) as pool:
            work = [pool.submit(label_rows, server.address, person, case) for person in PERSONS]
            said = {person: done.result() for person, done in zip(PERSONS, work, strict=True)}
            server.stop()
        compare(said, stored(folder))
    return HELD


def write_project(folder: Path, rng: np.random.Generator) -> None:
    """A table without labels."""
    lines = [f"w{i:03d},{a:.3f},{b:.3f}," for i, (a, b) in enumerate(rng.normal(size=(N_ROWS, 2)))]
    (folder / "rows.csv").write_text("\n".join(["id,acc_x,gyr_x,label", *lines]), encoding="utf-8")
    (folder / "cmvmed.toml").write_text(
        '[data]\npath = "rows.csv"\nid = "id"\nlabels = "label"\n'
        '[views.acc]\ncolumns = "acc_*"\n[views.gyr]\ncolumns = "gyr_*"\n',
        encoding="utf-8",
    )


def label_rows(address: str, person: str, case: Case) -> dict[str, str]:
    """What a page says that it saved, of rows by identifier."""
    from tests.labeling.driven import Page
    from tests.pages.browser import chromium

    rng, said = np.random.default_rng([case.seed, PERSONS.index(person)]), {}
    with tempfile.TemporaryDirectory() as profile, chromium(profile) as browser:
        page = Page(browser, address)
        page.script(
            "const n = document.getElementById('annotator'); n.value = arguments[0]; n.dispatchEvent(new Event('change'))",
            person,
        )
        while len(said) < case.n_labels:
            row, label = page.text("row-title"), str(rng.choice(CLASSES))
            page.label_as(label)
            said[row] = label
            if rng.random() < case.share_undone:
                page.press("u")
                page.wait(lambda: page.text("saved").startswith("Undone"))
                del said[row]
    return said


def stored(folder: Path) -> dict[tuple[str, str], str]:
    """The labels of the file, by person and identifier."""
    from cmvmed.workbench.label_store import LabelStore

    with LabelStore(folder / "cmvmed.labels.sqlite") as store:
        found = [event for event in store.current().values() if event.action == "label"]
    return {(event.annotator, event.item): str(event.label) for event in found}


def compare(said: dict[str, dict[str, str]], found: dict[tuple[str, str], str]) -> None:
    """Raise a fault unless all that was said is in the file, and nothing else."""
    expected = {(person, row): label for person, own in said.items() for row, label in own.items()}
    lost = {key: label for key, label in expected.items() if found.get(key) != label}
    more = {key: label for key, label in found.items() if key not in expected}
    if lost:
        raise Fault("labels that a page confirmed are lost or others", f"{len(lost)}: {list(lost.items())[:3]}")
    if more:
        raise Fault("labels that nobody gave", f"{len(more)}: {list(more.items())[:3]}")
