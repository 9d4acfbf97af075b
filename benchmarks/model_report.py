"""The picture of a model's report: ``python -m benchmarks.model_report [--page FILE]`` writes docs/model_report.png.

The breast cancer cells of scikit-learn as a table with three views, of which about one cell in ten is labeled, go through
the steps of a user: project file, check, training, report. The first screen is photographed by Chromium, which must be
installed. ``--page`` also keeps the page.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks.provenance import ROOT
from cmvmed import CMVMED
from cmvmed.datasets import load_breast_cancer_views
from cmvmed.workbench import Project, init
from cmvmed.workbench.report import write_report

PICTURE = ROOT / "docs" / "model_report.png"
SHARE_LABELED = 0.1
SIZE = (1200, 1000)
MAX_BYTES = 200_000


def write_cells(path: Path) -> None:
    """The table as a user would have it: identifiers, columns with the prefix of their view, few diagnoses."""
    data = load_breast_cancer_views(as_frame=True)
    frame = data.data.rename(columns=lambda name: re.sub(r"\W+", "_", name))  # the first word of a name is its view
    rng = np.random.default_rng(0)
    labeled = rng.random(len(frame)) < SHARE_LABELED
    frame.insert(0, "cell_id", [f"c{row:03d}" for row in range(len(frame))])
    frame["diagnosis"] = np.where(labeled, np.asarray(data.target_names)[np.asarray(data.target)], "")
    frame.to_csv(path, index=False)


def make_page(folder: Path) -> Path:
    """The report of a model of the table."""
    write_cells(folder / "cells.csv")
    project_file = folder / "cmvmed.toml"
    project_file.write_text(init(folder / "cells.csv", project_file).text, encoding="utf-8")
    project = Project.load(project_file)
    table = project.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(**project.model_parameters).fit(table.views, table.labels, groups=table.groups)
    page = folder / "report.html"
    write_report(page, SimpleNamespace(project=project, model=model), table, project.check(), command="cmvmed train")
    return page


def photograph(page: Path, picture: Path, folder: Path) -> None:
    """The first screen of a page."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("The picture needs chromium.")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    flags += [f"--user-data-dir={folder / 'profile'}", f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={picture}"]
    subprocess.run([browser, *flags, page.as_uri()], check=True, capture_output=True, timeout=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", type=Path, help="also keep the page in this file")
    kept = parser.parse_args().page
    with tempfile.TemporaryDirectory() as name:
        page = make_page(Path(name))
        photograph(page, PICTURE, Path(name))
        if kept is not None:
            shutil.copyfile(page, kept)
        print(f"{PICTURE.relative_to(ROOT)}: {os.path.getsize(PICTURE):,} bytes; page {page.stat().st_size:,} bytes")
    if os.path.getsize(PICTURE) > MAX_BYTES:
        raise SystemExit(f"The picture is larger than {MAX_BYTES:,} bytes.")


if __name__ == "__main__":
    main()
