"""``cmvmed demo``: simulate, featurize, learn, compare, draw."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cmvmed.reproduction.demo.footsteps_demo import Recordings, Score, StageRecorder


@click.command()
@click.option(
    "--splits", type=click.IntRange(min=1), default=5, show_default=True, help="Random splits to average over."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the picture.",
)
@click.option("--quiet", is_flag=True, help="Print the results and no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(splits: int, output: Path, quiet: bool, as_json: bool) -> None:
    """Hear footsteps at four sensors, learn from 50 labels, see what it gains.

    Simulates the sound of 1500 walks past four sensors, some with an animal, and computes cepstral features. Then it
    compares what one can learn from 50 labels alone with what 1150 recordings without a label add, and draws
    how the sensors come to agree. Needs the extras audio and plot: pip install 'cmvmed[audio,plot]'.

    \b
    Examples:
      cmvmed demo
      cmvmed demo --splits 20 --output results
      cmvmed demo --quiet --json > demo.json
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    refuse_missing_extras()
    from cmvmed.reproduction.demo import demo_figure, footsteps_demo

    with announced("Simulating 1500 recordings of footsteps at four sensors", quiet):
        steps = footsteps_demo.simulate()
    with announced("Computing 200 cepstral coefficients of each sensor's sound", quiet):
        recordings = footsteps_demo.featurize(steps)
    scores, recorder = learn(recordings, splits, quiet)
    path = output / "demo.png"
    with announced("Drawing", quiet):
        accuracies = {method: [score.accuracy for score in done] for method, done in scores.items()}
        demo_figure.draw(recordings, accuracies, recorder, splits - 1, path)
    if as_json:
        click.echo(json.dumps(as_dict(scores, path), indent=2))
    else:
        print_results(scores, path)


def refuse_missing_extras() -> None:
    """Say what is not installed before anything is computed."""
    missing = [
        extra for extra, module in {"audio": "librosa", "plot": "matplotlib"}.items() if find_spec(module) is None
    ]
    if missing:
        extras = ",".join(missing)
        raise ImportError(f"The demonstration needs more than the core: pip install 'cmvmed[{extras}]'")


@contextmanager
def announced(doing: str, quiet: bool) -> Iterator[None]:
    """Say what is being done and, once it is, how long it took."""
    start = perf_counter()
    if not quiet:
        click.echo(f"{doing} ... ", nl=False, err=True)
    yield
    if not quiet:
        click.echo(f"{perf_counter() - start:.1f} s", err=True)


def learn(recordings: "Recordings", splits: int, quiet: bool) -> tuple[dict[str, list["Score"]], "StageRecorder"]:
    """Score every method on every split, and watch the consensus grow in the last one."""
    from cmvmed.reproduction.demo.footsteps_demo import methods, recorder_for, run_split

    recorder = recorder_for(recordings, splits - 1)
    scores: dict[str, list[Score]] = {method: [] for method in methods(recordings)}
    with click.progressbar(
        length=splits * len(scores), label="Learning", file=sys.stderr, hidden=quiet, show_pos=True
    ) as bar:
        for seed in range(splits):
            for score in run_split(recordings, seed, recorder if seed == splits - 1 else None):
                scores[score.method].append(score)
                bar.update(1)
    return scores, recorder


def as_dict(scores: dict[str, list["Score"]], path: Path) -> dict[str, Any]:
    """The results for a machine to read."""
    from cmvmed.reproduction.demo.footsteps_demo import N_LABELED, N_RECORDINGS, N_TRAIN

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


def print_results(scores: dict[str, list["Score"]], path: Path) -> None:
    """Print the table, what it comes down to, the picture's path and what to try next."""
    from cmvmed.reproduction.demo.footsteps_demo import CONSENSUS, LABELS_ONLY, N_LABELED, N_RECORDINGS, N_TRAIN

    n_splits = len(scores[CONSENSUS])
    click.echo(
        f"\n{N_LABELED} labeled and {N_TRAIN - N_LABELED} unlabeled recordings, {N_RECORDINGS - N_TRAIN} test recordings; "
        f"percent, mean ± SD over {n_splits} random split{'s' * (n_splits > 1)}\n"
    )
    click.echo(f"{'':44}{'accuracy':>14}{'balanced accuracy':>20}")
    best = max(scores, key=lambda method: _mean(scores[method]))
    for method, done in scores.items():
        accuracy = _mean_and_deviation([score.accuracy for score in done])
        balanced = _mean_and_deviation([score.balanced_accuracy for score in done])
        click.secho(f"{method:44}{accuracy:>14}{balanced:>20}", bold=method == best)
    gain = 100 * (_mean(scores[CONSENSUS]) - _mean(scores[LABELS_ONLY]))
    click.echo(
        f"\nFrom the same {N_LABELED} labels, the consensus with unlabeled recordings gains {gain:+.1f} points of accuracy."
    )
    click.echo(f"Picture: {path}")
    click.echo(
        "Try next: cmvmed reproduce table1 --quick, the paper's comparison on real data (cmvmed datasets shows which are here)."
    )


def _mean(done: list["Score"]) -> float:
    return sum(score.accuracy for score in done) / len(done)


def _mean_and_deviation(values: list[float]) -> str:
    from statistics import mean, stdev

    spread = f" ± {100 * stdev(values):4.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"
