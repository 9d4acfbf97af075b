"""``cmvmed demo``: the commands on the bundled table, then a comparison of methods on simulated recordings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from shutil import which
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING

import click

from cmvmed._optional import install_command

if TYPE_CHECKING:
    from cmvmed.demo.footsteps_demo import Footsteps, Recorder, Score
    from cmvmed.demo.room_demo import RoomScores

EXTRAS = {"audio": "librosa", "plot": "matplotlib", "workbench": "pandas"}
ROOM_COMMANDS = (
    "init --example --force",
    "check",
    "train --force",
    "predict room_new.csv -o predictions.csv --force",
)
OWN_FILE = """
Your own file: a table with one row per measurement, and a column of classes that is empty in most rows.
  {program} init mytable.csv    guesses sensors and labels, and writes cmvmed.toml
  {program} train               a model, the accuracy to expect, and report.html"""


@click.command()
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of random splits to average over.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder of the files.",
)
@click.option("--quiet", is_flag=True, help="Print the results without progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(splits: int, output: Path, quiet: bool, as_json: bool) -> None:
    """Learn how many people are in a room from its sensors; then classify simulated footsteps.

    First the commands of a project, from init to predict, on a bundled table of real sensors. Then 1500 simulated
    recordings of people who walk past four acoustic sensors, some of them with an animal: classifiers fitted to 50
    labels only are compared with CMV-MED, which also uses 1150 unlabeled recordings, and the results are drawn. Needs
    the extras audio, plot and workbench.

    \b
    Examples:
      cmvmed demo
      cmvmed demo --splits 20 --output results
      cmvmed demo --quiet --json > demo.json
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    check_extras()
    room = run_room(output / "room", hidden=quiet or as_json)
    if not as_json:
        print_room(room, output / "room")
    from cmvmed.demo import demo_figure, footsteps_demo

    with timed_step("Simulating 1500 recordings of footsteps at four sensors", quiet):
        steps = footsteps_demo.simulate()
    with timed_step("Computing 200 cepstral coefficients for each sensor", quiet):
        recordings = footsteps_demo.featurize(steps)
    scores, recorder = compare_methods(recordings, splits, quiet)
    path = output / "demo.png"
    with timed_step("Drawing", quiet):
        accuracies = {method: [score.accuracy for score in done] for method, done in scores.items()}
        demo_figure.draw_figure(recordings, accuracies, recorder, splits - 1, path)
    if as_json:
        click.echo(json.dumps({"room": asdict(room), **as_dict(scores, path)}, indent=2))
    else:
        print_results(scores, path)
        click.echo(OWN_FILE.format(program=program()))


def check_extras() -> None:
    """Raise an error if a required extra is not installed."""
    missing = [extra for extra, module in EXTRAS.items() if find_spec(module) is None]
    if missing:
        raise ImportError(f"The demonstration needs optional packages: {install_command(','.join(missing))}")


def run_room(folder: Path, *, hidden: bool) -> RoomScores:
    """Run the commands of a project on the bundled table in a folder, and score the model by the hidden labels."""
    from cmvmed.cli.main import main
    from cmvmed.demo.room_demo import score_room
    from cmvmed.workbench import TrainedProject

    folder.mkdir(parents=True, exist_ok=True)
    nowhere = StringIO()
    with chdir(folder):
        for line in ROOM_COMMANDS:
            if hidden:
                with redirect_stdout(nowhere), redirect_stderr(nowhere):
                    main(line.split(), standalone_mode=False)
            else:
                click.secho(f"$ cmvmed {line.replace(' --force', '')}", bold=True)
                main(line.split(), standalone_mode=False)
                click.echo()
        return score_room(TrainedProject.load("model.cmvmed").predict("room.csv")["class"])


def print_room(room: RoomScores, folder: Path) -> None:
    """Print what was learned, and where the report is."""
    click.secho("What was learned", bold=True)
    click.echo(fill(room.sentence, 100, break_on_hyphens=False))
    click.echo(f"Report, for a browser: {(folder / 'report.html').absolute()}\n")


def program() -> str:
    """How the user calls cmvmed: by its path if its environment is not active."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "cmvmed" and which("cmvmed") is None else "cmvmed"


@contextmanager
def timed_step(description: str, quiet: bool) -> Iterator[None]:
    """Print the description of a step and, when it is finished, its duration."""
    start = perf_counter()
    if not quiet:
        click.echo(f"{description} ... ", nl=False, err=True)
    yield
    if not quiet:
        click.echo(f"{perf_counter() - start:.1f} s", err=True)


def compare_methods(recordings: Footsteps, splits: int, quiet: bool) -> tuple[dict[str, list[Score]], Recorder]:
    """Score every method on every split, and record the stages of CMV-MED on the last split."""
    from cmvmed.demo.footsteps_demo import make_recorder, methods, run_split

    recorder = make_recorder(recordings, splits - 1)
    scores: dict[str, list[Score]] = {method: [] for method in methods(recordings)}
    with click.progressbar(
        length=splits * len(scores), label="Comparing methods", file=sys.stderr, hidden=quiet, show_pos=True
    ) as bar:
        for seed in range(splits):
            for score in run_split(recordings, seed, recorder if seed == splits - 1 else None):
                scores[score.method].append(score)
                bar.update(1)
    return scores, recorder


def as_dict(scores: dict[str, list[Score]], path: Path) -> dict[str, object]:
    """The results as a JSON object."""
    from cmvmed.demo.footsteps_demo import N_LABELED, N_RECORDINGS, N_TRAIN

    return {
        "n_labeled": N_LABELED,
        "n_unlabeled": N_TRAIN - N_LABELED,
        "n_test": N_RECORDINGS - N_TRAIN,
        "picture": str(path),
        "methods": [
            {
                "method": method,
                "accuracy": [score.accuracy for score in done],
                "balanced_accuracy": [score.balanced_accuracy for score in done],
            }
            for method, done in scores.items()
        ],
    }


def print_results(scores: dict[str, list[Score]], path: Path) -> None:
    """Print the table, the gain from unlabeled recordings, the path of the figure and the next step."""
    from cmvmed.demo.footsteps_demo import CONSENSUS, LABELS_ONLY, N_LABELED, N_RECORDINGS, N_TRAIN

    n_splits = len(scores[CONSENSUS])
    click.echo(
        f"\n{N_LABELED} labeled and {N_TRAIN - N_LABELED} unlabeled recordings, "
        f"{N_RECORDINGS - N_TRAIN} test recordings; percent, mean ± SD over {n_splits} random split{'s' * (n_splits > 1)}\n"
    )
    click.echo(f"{'':44}{'accuracy':>14}{'balanced accuracy':>20}")
    best = max(scores, key=lambda method: _mean(scores[method]))
    for method, done in scores.items():
        accuracy = _mean_and_deviation([score.accuracy for score in done])
        balanced = _mean_and_deviation([score.balanced_accuracy for score in done])
        click.secho(f"{method:44}{accuracy:>14}{balanced:>20}", bold=method == best)
    gain = 100 * (_mean(scores[CONSENSUS]) - _mean(scores[LABELS_ONLY]))
    click.echo(
        f"\nGain from the unlabeled recordings with the same {N_LABELED} labels: {gain:+.1f} points of accuracy."
    )
    click.echo(f"Figure: {path}")


def _mean(done: list[Score]) -> float:
    return sum(score.accuracy for score in done) / len(done)


def _mean_and_deviation(values: list[float]) -> str:
    from statistics import mean, stdev

    spread = f" ± {100 * stdev(values):4.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"
