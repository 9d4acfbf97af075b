"""``cmvmed demo``: simulate recordings, compute features, compare methods, draw a figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cmvmed.demo.footsteps_demo import Recorder, Recordings, Score


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
    help="Folder of the figure.",
)
@click.option("--quiet", is_flag=True, help="Print the results without progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(splits: int, output: Path, quiet: bool, as_json: bool) -> None:
    """Classify simulated footsteps at four sensors with 50 labels, with and without unlabeled data.

    Simulates 1500 recordings of people who walk past four acoustic sensors, some of them with an animal, and computes
    cepstral features. Then compares classifiers fitted to 50 labels only with CMV-MED, which also uses 1150 unlabeled
    recordings, and draws the results. Needs the extras audio and plot: pip install 'cmvmed[audio,plot]'.

    \b
    Examples:
      cmvmed demo
      cmvmed demo --splits 20 --output results
      cmvmed demo --quiet --json > demo.json
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    check_extras()
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
        click.echo(json.dumps(as_dict(scores, path), indent=2))
    else:
        print_results(scores, path)


def check_extras() -> None:
    """Raise an error if a required extra is not installed."""
    missing = [
        extra for extra, module in {"audio": "librosa", "plot": "matplotlib"}.items() if find_spec(module) is None
    ]
    if missing:
        extras = ",".join(missing)
        raise ImportError(f"The demonstration needs optional packages: pip install 'cmvmed[{extras}]'")


@contextmanager
def timed_step(description: str, quiet: bool) -> Iterator[None]:
    """Print the description of a step and, when it is finished, its duration."""
    start = perf_counter()
    if not quiet:
        click.echo(f"{description} ... ", nl=False, err=True)
    yield
    if not quiet:
        click.echo(f"{perf_counter() - start:.1f} s", err=True)


def compare_methods(recordings: Recordings, splits: int, quiet: bool) -> tuple[dict[str, list[Score]], Recorder]:
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
    click.echo("Next: `cmvmed init DATA` looks at your own data; `cmvmed --help` shows the commands.")


def _mean(done: list[Score]) -> float:
    return sum(score.accuracy for score in done) / len(done)


def _mean_and_deviation(values: list[float]) -> str:
    from statistics import mean, stdev

    spread = f" ± {100 * stdev(values):4.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"
