"""What landmarks change: ``python -m benchmarks.agreement > benchmarks/results/agreement.md``.

Set CMVMED_DATA to the folder of the data files. Rows of the sets are fitted with exact kernels and with several numbers of
landmarks, by ``CMVMED.paper()`` and by the consensus of the default alone. A cell has the part of the kernel's trace that the
landmarks miss, of the view where it is largest, and the share of the unlabeled rows to which they give another class than
exact kernels. ``MAX_RESIDUAL`` of ``cmvmed.auto.approximation`` is chosen by it; ``benchmarks.threshold`` compares accuracy and
time.
"""

import argparse
import warnings
import zlib
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from benchmarks.suite.sets import DataSet, load
from cmvmed import CMVMED

SETS = ["footsteps", "reuters1200", "aloi"]
LANDMARKS = (150, 300, 600, 1000)
N_LABELS = 30
SPLIT = 1000  # for development
MODELS = {"CMVMED.paper()": CMVMED.paper(), "consensus": CMVMED(members="consensus")}


def draw_labels(data: DataSet) -> Any:
    """The classes of random rows, at least one of each class, -1 for all others, (n,)."""
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), SPLIT])
    while True:
        labeled = rng.permutation(data.y.size)[: max(N_LABELS, 3 * data.counts.size)]
        if np.unique(data.y[labeled]).size == data.counts.size:
            break
    y = np.full(data.y.size, -1)
    y[labeled] = data.y[labeled]
    return y


def cells(model: CMVMED, X: Any, y: Any) -> list[str]:
    """Missed part of the kernel and changed classes, for each number of landmarks."""
    exact = model.set_params(approximation="exact").fit(X, y).transduction_
    found = []
    for number in LANDMARKS:
        fitted = model.set_params(approximation=number).fit(X, y)
        missed = max(fitted.approximation_["residual"].values())
        changed = np.mean((fitted.transduction_ != exact)[y == -1])
        found.append(f"{100 * missed:.1f}, {100 * changed:.1f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{heading()}\n\nMissed part of the kernel in %, unlabeled rows with another class in %.\n")
    print(f"| set | rows | model | {' | '.join(f'{number} landmarks' for number in LANDMARKS)} |")
    print("| --- " * (3 + len(LANDMARKS)) + "|")
    for name in options.sets:
        data = load(name)
        y = draw_labels(data)
        for title, model in MODELS.items():
            with threadpool_limits(1):
                found = cells(model.set_params(views=data.views), data.X, y)
            print(f"| {name} | {y.size} | {title} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
