"""Tables and picture of the comparison, from its results alone."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.methods import METHODS
from benchmarks.peers.rows import SETS
from benchmarks.peers.store import Results
from benchmarks.provenance import write

BELOW_BEST = (1.0, 3.0, 10.0)  # points below the best accuracy of any method: what is to be reached
LEAST_SECONDS = 0.01  # of the picture's logarithmic axis, the resolution of processor time


class Point(NamedTuple):
    """All draws of a method with a number of rows.

    Attributes
    ----------
    n : int
    accuracy, spread : float
        Mean and standard deviation over the draws, in percent.
    seconds, mib : float
        Medians.
    n_draws : int
    stopped : str
        Why it was stopped; the figures are NaN then.
    """

    n: int
    accuracy: float
    spread: float
    seconds: float
    mib: float
    n_draws: int
    stopped: str = ""


Curves = Mapping[str, Sequence[Point]]  # by method, in the order of rows


def curves(results: Results, data: str) -> Curves:
    """What the results say of one data set."""
    found: dict[str, list[Point]] = {}
    for method in METHODS:
        runs: dict[int, list[Mapping[str, Any]]] = {}
        for key, result in sorted(results.items()):
            if (key.data, key.method) == (data, method):
                runs.setdefault(key.n, []).append(result)
        if runs:
            found[method] = [summary(n, runs[n]) for n in sorted(runs)]
    return found


def summary(n: int, runs: Sequence[Mapping[str, Any]]) -> Point:
    """Mean accuracy, median costs; or why one of them was stopped."""
    for run in runs:
        if "stopped" in run:
            return Point(n, np.nan, np.nan, np.nan, np.nan, len(runs), run["stopped"])
    accuracies = [100.0 * run["accuracy"] for run in runs]
    spread = float(np.std(accuracies, ddof=1)) if len(runs) > 1 else np.nan
    seconds, mib = (float(np.median([run[field] for run in runs])) for field in ("seconds", "mib"))
    return Point(n, float(np.mean(accuracies)), spread, seconds, mib, len(runs))


def write_tables(results: Results, path: Path) -> str:
    """Write the tables of all data sets; return them."""
    sections = [section(data, curves(results, data), results) for data in SETS]
    text = "\n\n".join("\n".join(map(_wrapped, lines)) for lines in sections if lines) + "\n"
    write(path, text)
    return text


def section(data: str, by_method: Curves, results: Results) -> list[str]:
    """Costs and accuracies by rows, then the least cost of given accuracies."""
    if not any(not point.stopped for points in by_method.values() for point in points):
        return []
    return [
        f"**{data}**: {_legend(data, by_method, results)}",
        "",
        *size_table(by_method),
        "",
        "Least processor time of a fit that reaches an accuracy:",
        "",
        *target_table(by_method),
    ]


def size_table(by_method: Curves) -> list[str]:
    """Accuracy, seconds and memory by method and number of rows."""
    sizes = sorted({point.n for points in by_method.values() for point in points})
    cells = {method: {point.n: _cell(point) for point in points} for method, points in by_method.items()}
    rows = [[method, *(cells[method].get(n, "–") for n in sizes)] for method in by_method]
    return _table([["method", *(f"{n:,} rows" for n in sizes)], *rows])


def target_table(by_method: Curves) -> list[str]:
    """For accuracies just below the best of all, the cheapest fit of each method that reaches them."""
    best = max(point.accuracy for points in by_method.values() for point in points if not point.stopped)
    targets = [best - below for below in BELOW_BEST]
    rows = [[method, *(_cost(cheapest(points, target)) for target in targets)] for method, points in by_method.items()]
    return _table([["method", *(f"{target:.1f} %" for target in targets)], *rows])


def cheapest(points: Iterable[Point], target: float) -> Point | None:
    """The fit with least seconds among those at least as accurate as the target."""
    reached = [point for point in points if point.accuracy >= target]  # false for NaN
    return min(reached, key=lambda point: point.seconds, default=None)


def _cell(point: Point) -> str:
    if point.stopped:
        return point.stopped
    spread = "" if np.isnan(point.spread) else f" ± {point.spread:.1f}"
    return f"{point.accuracy:.1f}{spread} %, {_seconds(point)}, {point.mib:.0f} MiB"


def _cost(point: Point | None) -> str:
    return "not reached" if point is None else f"{_seconds(point)}, {point.mib:.0f} MiB ({point.n:,} rows)"


def _seconds(point: Point) -> str:
    return f"{point.seconds:.2f} s" if point.seconds < 1.0 else f"{point.seconds:.1f} s"


def _legend(data: str, by_method: Curves, results: Results) -> str:
    """Labels, held-out rows, real rows and draws."""
    runs = [run for key, run in results.items() if key.data == data and "stopped" not in run]
    n_labeled, n_test, n_real = (max(run[field] for run in runs) for field in ("n_labeled", "n_test", "n_real"))
    largest = max(point.n for points in by_method.values() for point in points)
    source = "all drawn anew" if n_real >= largest else f"of which {n_real:,} are real and the others made of them"
    draws = dict.fromkeys(sorted({point.n for points in by_method.values() for point in points}), 0)
    for points in by_method.values():
        draws |= {point.n: max(draws[point.n], point.n_draws) for point in points}
    counts = ", ".join(f"{count} with {n:,} rows" for n, count in draws.items())
    return (
        f"{n_labeled} labels, {n_test:,} held-out rows; training rows {source}. Mean accuracy on the held-out rows and its "
        f"standard deviation over draws of rows and labels ({counts}), median processor time and memory of a fit."
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *rest = rows
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rest)]


def _wrapped(line: str) -> str:
    return line if line.startswith("|") else textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False)


def draw_picture(results: Results, path: Path) -> None:
    """Accuracy over seconds, a panel for each data set; markers grow with the rows, a cross ends a curve that was stopped."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    shown = {data: found for data in SETS if (found := curves(results, data))}
    with matplotlib.rc_context({"svg.hashsalt": "cmvmed"}):
        figure, axes = plt.subplots(1, len(shown), figsize=(4.5 * len(shown), 4.5), layout="constrained", squeeze=False)
        for axis, (data, by_method) in zip(axes[0], shown.items(), strict=True):
            for number, method in enumerate(METHODS):
                _draw_curve(axis, method, f"C{number}", by_method.get(method, ()))
            axis.set(xscale="log", xlabel="processor time of the fit, seconds", title=data)
            axis.grid(visible=True, alpha=0.3)
        axes[0][0].set_ylabel("accuracy on held-out rows, %")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _draw_curve(axis: Any, method: str, color: str, points: Sequence[Point]) -> None:
    done = [point for point in points if not point.stopped]
    x, y = [max(point.seconds, LEAST_SECONDS) for point in done], [point.accuracy for point in done]
    style = {"linewidth": 2.5, "color": "black"} if method == "CMVMED" else {"linewidth": 1.2, "color": color}
    axis.plot(x, y, "-", label=method, **style)
    axis.scatter(x, y, s=[6.0 * (np.log10(point.n) - 2.0) ** 2 for point in done], color=style["color"])
    if done and len(done) < len(points):
        axis.plot(x[-1], y[-1], "x", markersize=12, color=style["color"])
