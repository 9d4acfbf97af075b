"""How fast the labeling page is: ``python -m benchmarks.labeling`` writes benchmarks/results/labeling.md.

Tables of 5,000 and 10,000 rows in three views with 3 and 50 classes are labeled as the page does it: by requests to a
running ``cmvmed label``, while its model learns. Seconds of the processor are those of the process that learns, which
other work on the machine does not change; the other seconds are those of a clock. "First row" says whether it was
chosen to cover the data, or at random because that choice was not ready in time.

``--simulate`` lets a simulated user label what the page proposes: see ``benchmarks.labeling_user``.
"""

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.labeling_client import Client
from benchmarks.labeling_user import add_options, simulate_and_report
from benchmarks.provenance import RESULTS, write
from cmvmed.workbench import init

CASES = [(5_000, 3), (10_000, 50)]  # rows, classes
N_VIEWS, N_COLUMNS = 3, 8
N_LABELS = 60
FITS = 3  # that are waited for
CHOSEN = {"suggest": "covering", "random": "random"}


@dataclass(frozen=True)
class Measured:
    """Seconds of a session."""

    n_rows: int
    n_classes: int
    first_row: float
    first_chosen: str  # strategy by which it was chosen
    first_processor: float  # seconds of the processor of the server until then
    next_row: list[float]  # while a fit runs
    status: list[float]
    fit: list[tuple[float, float]]  # seconds of the processor, and by the clock


def write_rows(folder: Path, n_rows: int, n_classes: int) -> list[str]:
    """A table without labels, and its classes."""
    rng = np.random.default_rng(0)
    classes = rng.integers(n_classes, size=n_rows)
    views = [
        rng.normal(size=(n_rows, N_COLUMNS)) + 1.5 * rng.normal(size=(n_classes, N_COLUMNS))[classes]
        for _ in range(N_VIEWS)
    ]
    names = [f"view{v}_{c}" for v in range(N_VIEWS) for c in range(N_COLUMNS)]
    lines = [f"r{i},{','.join(f'{x:.4f}' for x in row)}" for i, row in enumerate(np.hstack(views))]
    (folder / "rows.csv").write_text("\n".join([",".join(["id", *names]), *lines]))
    file = folder / "cmvmed.toml"
    file.write_text(init(folder / "rows.csv", file).text)
    return [f"class {k:02d}" for k in classes]


def measure(n_rows: int, n_classes: int) -> Measured:
    """Label rows of a table as they come, and then wait for some fits."""
    with tempfile.TemporaryDirectory() as name:
        truth = write_rows(Path(name), n_rows, n_classes)
        with Client(Path(name)) as client:  # not measured: compiles the modules
            client.wait()
        with Client(Path(name)) as client:
            return _measure(client, truth, n_classes)


def _measure(client: Client, truth: list[str], n_classes: int) -> Measured:
    row = client.next_row()
    first, chosen, first_processor = time.perf_counter() - client.start, row["strategy"], client.processor_seconds()
    next_row, status, fits = [], [], []
    for k in range(N_LABELS + 1000):
        said = client.label(row, truth[row["row"]])
        fit = said["processor"], said["seconds"]
        if said["fitted_labels"] and fit not in fits:
            fits.append(fit)
        if k >= N_LABELS and len(fits) >= FITS:
            break
        start = time.perf_counter()
        row = client.next_row()
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        learning = client.ask("/api/status")["learning"]
        if learning:
            next_row.append(seconds)
            status.append(time.perf_counter() - start)
        time.sleep(0.2)  # of a fast reader
    return Measured(len(truth), n_classes, first, chosen, first_processor, next_row, status, fits)


def table(measured: list[Measured]) -> str:
    """The results as a table."""
    head = (
        "| rows | classes | first row, s | of the processor, s | next row, median and 95 %, ms | status, 95 %, ms "
        "| fit, s of the processor | by the clock |"
    )
    lines = [head, "| --- " * 8 + "|"]
    for m in measured:
        half, most = 1e3 * np.quantile(m.next_row, [0.5, 0.95])
        asked = 1e3 * np.quantile(m.status, 0.95)
        cells = [
            f"{m.n_rows:,}",
            m.n_classes,
            f"{m.first_row:.1f}, {CHOSEN[m.first_chosen]}",
            f"{m.first_processor:.1f}",
        ]
        cells += [
            f"{half:.0f}, {most:.0f}",
            f"{asked:.0f}",
            *(f"{seconds:.1f}" for seconds in np.median(m.fit, axis=0)),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    load = f"Measured at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors."
    return "\n".join([*lines, "", load])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, choices=[rows for rows, _ in CASES], help="measure only this case, and print it"
    )
    add_options(parser)
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate_and_report(arguments)
        return
    text = table([measure(*case) for case in CASES if arguments.rows in (None, case[0])])
    print(text)
    if arguments.rows is None:
        write(RESULTS / "labeling.md", text)


if __name__ == "__main__":
    main()
