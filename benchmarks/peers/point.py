"""One fit in a process of its own: ``python -m benchmarks.peers.point CMVMED gauss 4000 0 120 4``.

The last line of its output is the result as JSON. A fit that takes more processor time than the limit is ended by the system
(SIGXCPU); one that asks for more memory than the limit, data and imported libraries not counted, gets a MemoryError. Memory
is the growth of the process's resident memory during the fit. A small fit before is not measured, so that imports and
compilation are not.
"""

import argparse
import json
import math
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers.methods import METHODS
from benchmarks.peers.rows import SETS, read_rows
from benchmarks.scale_points import memory_now
from cmvmed.reproduction.peak_memory import peak_memory

SMALL = 300


def measure(method: str, data: str, n: int, draw: int, seconds: float, gib: float) -> dict[str, Any]:
    small = read_rows(data, SMALL, draw)
    METHODS[method](small.views).fit(small.X, small.y).predict(small.X)
    rows = read_rows(data, n, draw)
    model = METHODS[method](rows.views)
    with limited(seconds, gib), peak_memory() as peak:
        fit_seconds = processor_time(lambda: model.fit(rows.X, rows.y))
    answer: list[Any] = []
    predict_seconds = processor_time(lambda: answer.append(model.predict(rows.X_test)))
    return {
        "seconds": fit_seconds,
        "mib": peak.mib,
        "accuracy": float(np.mean(answer[0] == rows.y_test)),
        "predict_us": 1e6 * predict_seconds / rows.y_test.size,
        "n_labeled": int((rows.y >= 0).sum()),
        "n_real": rows.n_real,
        "n_test": int(rows.y_test.size),
    }


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def limited(seconds: float, gib: float) -> Iterator[None]:
    """Limits of further processor time and memory."""
    limits = {
        resource.RLIMIT_CPU: math.ceil(time.process_time() + seconds),
        resource.RLIMIT_DATA: int(memory_now("VmData") * 2**20 + gib * 2**30),
    }
    before = {kind: resource.getrlimit(kind) for kind in limits}
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, before[kind][1]))
    try:
        yield
    finally:
        for kind in limits:
            resource.setrlimit(kind, before[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=list(METHODS))
    parser.add_argument("data", choices=SETS)
    parser.add_argument("n", type=int)
    parser.add_argument("draw", type=int)
    parser.add_argument("seconds", type=float, help="limit of processor time")
    parser.add_argument("gib", type=float, help="limit of memory")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(measure(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
