"""Expected time of the rows of an experiment that are not finished, from the times of those that are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cmvmed.reproduction.result_rows import Key, ResultRow


@dataclass(frozen=True)
class MethodTime:
    """Remaining rows of a method under a protocol, and their expected time on one processor core.

    ``n_unknown`` rows are of data sets for which the method has no finished row; they are not in ``seconds``.
    """

    method: str
    protocol: str
    n_rows: int
    seconds: float
    n_unknown: int


def expected_times(remaining: Collection[Key], rows: Sequence[ResultRow]) -> list[MethodTime]:
    """Expected times by method and protocol, the longest first.

    A row is expected to take the mean time of the finished rows of the same data set, method and protocol with the
    nearest number of labels.
    """
    seconds: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for row in rows:
        if row.fit_seconds is not None:
            by_labels = seconds.setdefault((row.dataset, row.method, row.protocol), {})
            by_labels.setdefault(row.n_labeled, []).append(row.fit_seconds + (row.predict_seconds or 0.0))
    groups: dict[tuple[str, str], list[float | None]] = {}
    for key in remaining:
        known = seconds.get((key.dataset, key.method, key.protocol), {})
        groups.setdefault((key.method, key.protocol), []).append(_nearest_mean(known, key.n_labeled))
    times = [
        MethodTime(*names, len(values), sum(value or 0.0 for value in values), values.count(None))
        for names, values in groups.items()
    ]
    return sorted(times, key=lambda time: (-time.seconds, time.method, time.protocol))


def _nearest_mean(known: Mapping[int, Sequence[float]], n_labeled: int) -> float | None:
    """Mean of the values at the nearest number of labels; None if there are none."""
    return fmean(known[min(known, key=lambda n: abs(n - n_labeled))]) if known else None


def format_times(times: Sequence[MethodTime], n_jobs: int) -> str:
    """A line per method and protocol with its share of the total, and the total on a number of processes."""
    total = sum(time.seconds for time in times)
    lines = [f"{'method':34}  {'protocol':8}  {'rows':>6}  {'minutes':>8}  share"]
    for time in times:
        unknown = f"  ({time.n_unknown} rows of unknown time)" if time.n_unknown else ""
        share = time.seconds / total if total else 0.0
        lines.append(
            f"{time.method:34}  {time.protocol:8}  {time.n_rows:6}  {time.seconds / 60.0:8.1f}  {share:5.0%}{unknown}"
        )
    n_rows, n_unknown = sum(time.n_rows for time in times), sum(time.n_unknown for time in times)
    lines.append(
        f"{n_rows} rows, {total / 60.0:.0f} minutes on one core, {total / 60.0 / n_jobs:.0f} in {n_jobs} processes"
        + (f", and {n_unknown} rows of unknown time: finish one split first" if n_unknown else "")
    )
    return "\n".join(lines)
