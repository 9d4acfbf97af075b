"""Tables and figure of the scale benchmark, from its results alone; the tables are also part of docs/scaling.md."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmvmed.data.sources.base import format_bytes
from cmvmed.scale.sampling import BYTES_PER_ROW

Results = Mapping[str, Mapping[str, Any]]
FIRST_LARGE = 64_000  # rows from which on the growth is fitted
CLUSTERS = ((1_000_000, 2), (100_000_000, 64), (1_000_000_000, 512))  # rows and cores for which the cost is predicted


def write_report(results: Results, tables: Path, figure: Path) -> str:
    """Write both files; return the tables."""
    parts = (growth_table, single, efficiency, threads, workers, outofcore, cost_model)
    sections = [part(results) for part in parts]
    text = "\n\n".join("\n".join(map(_wrapped, lines)) for lines in sections if lines) + "\n"
    tables.write_text(text)
    if fits(results):
        draw(results, figure)
    return text


def _wrapped(line: str) -> str:
    """A line of prose in lines of at most 120 characters; table rows stay as they are."""
    return line if line.startswith("|") else textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False)


def fits(results: Results) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Results of the fits by method and number of rows."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for name, result in results.items():
        kind, *method, n = name.split(" ")
        if kind == "fit":
            found.setdefault(" ".join(method), {})[int(n)] = result
    return {method: dict(sorted(points.items())) for method, points in sorted(found.items())}


def exponent(seconds: Mapping[int, float]) -> float:
    """Slope of log seconds over log rows, by least squares."""
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


def growth_table(results: Results) -> list[str]:
    by_method = fits(results)
    sizes = sorted({n for points in by_method.values() for n in points})
    if not sizes:
        return []
    lines = ["| method | " + " | ".join(f"{n:,} rows" for n in sizes) + " |", "| --- |" + " --- |" * len(sizes)]
    lines += [
        f"| {method} | " + " | ".join(_cell(points.get(n)) for n in sizes) + " |"
        for method, points in by_method.items()
    ]
    accuracies = {
        method: [(n, r["accuracy"]) for n, r in points.items() if "accuracy" in r]
        for method, points in by_method.items()
    }
    shown = [f"{method} {100 * a[-1][1]:.1f} ({a[-1][0]:,} rows)" for method, a in accuracies.items() if a]
    lines += [
        "",
        f"Seconds and memory of a fit{_repeats(by_method)}. "
        f"Accuracy in percent on new rows at the largest size: {', '.join(shown)}.",
    ]
    ours = {n: r["seconds"] for n, r in by_method.get("CMVMED", {}).items() if n >= FIRST_LARGE and "seconds" in r}
    if len(ours) > 1:
        lines += [
            "",
            f"From {min(ours):,} rows on, the time of CMVMED grows with the rows to the power {exponent(ours):.2f}.",
        ]
    return lines + _overtaken(by_method)


def _overtaken(by_method: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[str]:
    """From how many rows on CMVMED is faster than LabelSpreading, and how right both are there and below."""
    ours, lines = by_method.get("CMVMED", {}), []
    for method in (method for method in by_method if method.startswith("LabelSpreading")):
        theirs = by_method[method]
        both = [n for n in ours if n in theirs and "failed" not in ours[n]]
        slower = [n for n in both if theirs[n].get("seconds", np.inf) <= ours[n]["seconds"]]
        faster = [n for n in both if n > max(slower, default=0)]
        measured = [n for n in both if "accuracy" in theirs[n]]
        accuracies = [f"{100 * theirs[n]['accuracy']:.1f} against {100 * ours[n]['accuracy']:.1f}" for n in measured]
        if faster:
            sizes = ", ".join(f"{n:,}" for n in measured)
            lines.append(
                f"Faster than {method} from {min(faster):,} rows on; its accuracy against that of CMVMED at {sizes} rows: "
                f"{', '.join(accuracies)}."
            )
    return ["", *lines] if lines else []


def _repeats(by_method: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> str:
    """How often the fits were repeated, for the table's legend."""
    often = {
        method: {n: len(result.get("runs", [result])) for n, result in points.items() if "failed" not in result}
        for method, points in by_method.items()
    }
    own, others = often.get("CMVMED", {}), [counts for method, counts in often.items() if method != "CMVMED"]
    shared = {n: min((counts.get(n, times) for counts in others), default=1) for n, times in own.items()}
    shown = [f"{times} with {n:,} rows" for n, times in shared.items() if times > 1]
    more = [f"{times} of CMVMED with {n:,}" for n, times in own.items() if times > shared[n]]
    return f", the median of {', '.join(shown + more)}" if shown or more else ""


def _cell(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "–"
    return (
        str(result["failed"]) if "failed" in result else f"{result['seconds']:.1f} s, {max(result['mib'], 0):.0f} MiB"
    )


def _of_kind(results: Results, kind: str) -> list[Mapping[str, Any]]:
    return [r for name, r in sorted(results.items()) if name.split()[0] == kind and "failed" not in r]


def single(results: Results) -> list[str]:
    return [
        f"`predict` of a single row: {r['ms']:.2f} ms (median) by a model fitted to {r['n']:,} rows ({r['kind']})."
        for r in sorted(_of_kind(results, "single"), key=lambda r: r["n"])
    ]


def efficiency(results: Results) -> list[str]:
    return [
        f"One pass over {r['n']:,} rows of one view at p = {r['p']}: {r['seconds']:.1f} s, {r['ratio']:.2f} times the "
        "bare product, exponential and product (median of the ratios in one run)."
        for r in _of_kind(results, "efficiency")
    ]


def threads(results: Results) -> list[str]:
    one, two = (
        {name.split()[1]: r for name, r in results.items() if name.split()[::2] == ["threads", k]} for k in "12"
    )
    return [
        f"Threads, {r['n']:,} rows: a fit takes {r['seconds']:.1f} s with one and {two[n]['seconds']:.1f} s with two, "
        f"{r['seconds'] / two[n]['seconds']:.2f} times faster (medians of {len(r.get('runs', [r]))})."
        for n, r in one.items()
        if n in two and "failed" not in {**r, **two[n]}
    ]


def workers(results: Results) -> list[str]:
    measured = {(r["n"], r["workers"]): r for r in _of_kind(results, "dask")}
    pairs = [(r, measured[n, 2]) for (n, n_workers), r in measured.items() if n_workers == 1 and (n, 2) in measured]
    return [
        f"Dask, {one['n']:,} rows, `rows_tol=0`: a fit takes {one['seconds']:.1f} s with one single-threaded worker and "
        f"{two['seconds']:.1f} s with two. Of it, what is computed on the workers, a sweep over all rows, is "
        f"{_sweep(one) / _sweep(two):.2f} times faster; the prediction of all rows is "
        f"{one['predict_seconds'] / two['predict_seconds']:.2f} times faster. The client anneals samples by itself."
        for one, two in pairs
    ]


def _sweep(result: Mapping[str, Any]) -> float:
    """Median seconds of a sweep over the most rows."""
    rows, seconds = np.array(result["sweep_rows"]), np.array(result["sweep_seconds"])
    return float(np.median(seconds[rows == rows.max()]))


def outofcore(results: Results) -> list[str]:
    return [
        f"{r['gib_on_disk']:.2f} GiB of Parquet files ({r['n']:,} rows) with the process's data limited to {r['limit_gib']:g} GiB: "
        f"fit {r['seconds']:.0f} s, prediction of all rows {r['predict_seconds']:.0f} s, accuracy {100 * r['accuracy']:.1f} %, "
        f"most resident memory {r['peak_mib']:.0f} MiB."
        for r in _of_kind(results, "outofcore")
    ]


def cost_model(results: Results) -> list[str]:
    """Processor time of a row, and the cost that it predicts for more rows than were measured."""
    measured, ours = _of_kind(results, "efficiency"), fits(results).get("CMVMED", {})
    streamed = [r for r in ours.values() if r.get("sweeps", 0) > 0]
    if not measured or not streamed:
        return []
    g, s, e = (measured[-1][name] for name in ("gram_us", "sweep_us", "predict_us"))
    # fits of files had no room for a larger sample to start from, as those on clusters have none: they sweep most often
    sweeps, start = max(r["sweeps"] for r in streamed + _of_kind(results, "outofcore")), streamed[0]["start_seconds"]
    lines = [
        f"Processor time of a row of one view (p = {measured[-1]['p']}): {g:.0f} µs in the first pass, {s:.0f} µs in a sweep, "
        f"{e:.0f} µs in a prediction. Beside the passes about {start:.0f} s, however many rows there are; at most {sweeps} "
        "sweeps. Two views of 50 features would take, if every core is kept busy,",
        "",
        "| rows | cores | fit | prediction | memory of the client for its rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for n, cores in CLUSTERS:
        fit, predict = start + 2 * n * (g + sweeps * s) / 1e6 / cores, 2 * n * e / 1e6 / cores
        kept = format_bytes(BYTES_PER_ROW * n)
        lines.append(f"| {n:,} | {cores} | {fit / 60:.1f} min | {predict / 60:.1f} min | {kept} |")
    return lines


def draw(results: Results, path: Path) -> None:
    """Seconds and memory over rows, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context({"svg.hashsalt": "cmvmed"}):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        _draw_panel(axes[0], results, "seconds", "fit, seconds")
        _draw_panel(axes[1], results, "mib", "memory above the data, MiB")
        axes[0].legend(fontsize=8)
        figure.savefig(path, metadata={"Date": None})


def _draw_panel(axis: Any, results: Results, field: str, label: str) -> None:
    for method, points in fits(results).items():
        shown: Sequence[tuple[int, float]] = [(n, max(r[field], 0.01)) for n, r in points.items() if field in r]
        style = {"linewidth": 2.5, "color": "black"} if method == "CMVMED" else {"linewidth": 1.2}
        axis.loglog([n for n, _ in shown], [value for _, value in shown], "o-", markersize=4, label=method, **style)
    axis.set_xlabel("rows")
    axis.set_ylabel(label)
    axis.grid(visible=True, alpha=0.3)
