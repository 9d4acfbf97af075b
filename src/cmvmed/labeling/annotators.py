"""Several people who label: what each said of a row, how often they agree, and where they do not."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from cmvmed.workbench.label_store import Event

UNNAMED = "(no name)"


@dataclass(frozen=True)
class Agreement:
    """Rows that two annotators labeled without a review.

    ``kappa`` is Cohen's: (p - e)/(1 - e), with the share p of equal labels and e the share expected by chance.
    """

    first: str
    second: str
    n_rows: int
    n_equal: int
    kappa: float | None  # None if both gave all rows the same class


def labels_by_annotator(events: Iterable[Event]) -> dict[str, str]:
    """The last class that each annotator gave a row; what was taken back, and reviews of disagreements, are left out."""
    events = list(events)
    undone = {event.undoes for event in events}
    found: dict[str, str] = {}
    for event in events:
        if event.undoes is not None or event.revision in undone or event.chosen_by == "disputed":
            continue
        name = event.annotator or UNNAMED
        if event.label is None:
            found.pop(name, None)
        else:
            found[name] = event.label
    return found


def agreements(rows: Iterable[Mapping[str, str]]) -> list[Agreement]:
    """Each pair of annotators with rows in common, in the order of their names; ``rows`` are classes by annotator."""
    pairs: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for labels in rows:
        for first, second in combinations(sorted(labels), 2):
            pairs.setdefault((first, second), Counter())[labels[first], labels[second]] += 1
    return [_agreement(*names, counts) for names, counts in sorted(pairs.items())]


def _agreement(first: str, second: str, counts: Counter[tuple[str, str]]) -> Agreement:
    n, n_equal = counts.total(), sum(count for (a, b), count in counts.items() if a == b)
    of_first, of_second = Counter[str](), Counter[str]()
    for (a, b), count in counts.items():
        of_first[a] += count
        of_second[b] += count
    by_chance = sum(of_first[name] * of_second[name] for name in of_first) / n**2
    kappa = None if by_chance == 1.0 else (n_equal / n - by_chance) / (1.0 - by_chance)
    return Agreement(first, second, n, n_equal, kappa)
