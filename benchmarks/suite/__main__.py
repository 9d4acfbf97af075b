"""How good and how safe the default of CMVMED is on many data sets, beside its peers: ``python -m benchmarks.suite``.

Rows are kept in a file as they come, so that a run that was stopped goes on where it was. Splits from 1000 on are for
development, those from 0 on for reports. ``--sets sensors`` or ``--sets others`` stands for all of a kind.

While the library changes its peers do not: ``--peers FILE`` takes their rows from a file of an earlier run, so that
only CMVMED is fitted, and ``--before FILE`` shows the rows of CMVMED in such a file as one more method.
``--variant wide='{"consensus_weight": 0.1}'`` adds CMVMED with other settings, and ``--choose`` says which of them is
best by leaving one data set out at a time.
"""

import argparse
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from benchmarks.provenance import heading
from benchmarks.suite.choose import choose
from benchmarks.suite.methods import BEFORE, METHODS, ON_REQUEST, ORACLES, STARTS, Method, cmvmed, variant
from benchmarks.suite.report import report
from benchmarks.suite.run import ChangedSettingsError, possible_cells, run, usable_methods, wanted_keys
from benchmarks.suite.sets import KINDS, LOADERS, kind_of
from benchmarks.suite.splits import BUDGETS, DRAWS
from benchmarks.suite.store import Row, Store, rows_of_methods


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=[*KINDS, *LOADERS], default=list(LOADERS), metavar="SET")
    parser.add_argument(
        "--methods", nargs="*", choices=METHODS, default=[m for m in METHODS if m not in ON_REQUEST], metavar="METHOD"
    )
    parser.add_argument("--variant", action="append", type=_variant, default=[], metavar="NAME=JSON")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), help="labels per class, on average")
    parser.add_argument("--draws", nargs="+", choices=DRAWS, default=list(DRAWS), metavar="DRAW")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 1000 and more for development")
    parser.add_argument("--rows", type=int, default=400, help="most training rows")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("suite.jsonl"), help="where rows are kept")
    parser.add_argument("--peers", nargs="+", type=Path, default=[], metavar="FILE", help="rows of peers and starts")
    parser.add_argument("--before", type=Path, metavar="FILE", help="rows of CMVMED to compare with")
    parser.add_argument("--tabpfn", metavar="PATH", help="weights of TabPFN (benchmarks.suite.tabpfn)")
    parser.add_argument("--on", choices=("unlabeled", "held_out"), default="unlabeled", help="rows that are compared")
    parser.add_argument("--against", choices=STARTS, default="start", help="method against which harm is measured")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    parser.add_argument("--retry-failed", action="store_true")
    parser.add_argument("--choose", action="store_true", help="choose among CMVMED and its variants")
    given = parser.parse_args(arguments)
    given.sets = [name for name in LOADERS if name in given.sets or kind_of(name) in given.sets]
    return given


def _variant(text: str) -> Method:
    try:
        return variant(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def rows_before(path: Path, places: Collection[tuple[Any, ...]]) -> list[Row]:
    """The rows of CMVMED in a file, under another name, as far as they are of the same splits."""
    found = rows_of_methods([path], ["cmvmed"])
    return [row | {"method": BEFORE} for key, row in found.items() if key[:-1] in places]


def main() -> None:
    given = parse()
    if given.tabpfn:
        os.environ["CMVMED_TABPFN"] = given.tabpfn
    try:
        _main(given)
    except (ChangedSettingsError, FileNotFoundError) as error:
        sys.exit(str(error))


def _main(given: argparse.Namespace) -> None:
    methods = usable_methods([*(METHODS[name] for name in given.methods), *given.variant])
    cells = possible_cells(given.sets, given.budgets, given.draws, given.rows)
    splits = range(given.first, given.first + given.splits)
    wanted = wanted_keys(cells, methods, splits, given.rows)
    unchanging = [method.name for method in methods if method.is_peer or method.name in STARTS]
    store = Store(given.results, rows_of_methods(given.peers, unchanging))
    if not given.no_run:
        run(wanted, store, given.jobs, given.retry_failed)
    rows = [row for key, row in store.rows().items() if key in wanted]
    if given.before:
        rows += rows_before(given.before, {key[:-1] for key in wanted})
        position = 1 if methods and methods[0].name == "cmvmed" else 0
        methods.insert(position, Method(BEFORE, cmvmed, is_peer=False))
    print(f"{heading()}\n\n{report(rows, methods, given.on, given.against)}")
    if given.choose:
        fixed = (*STARTS, *ORACLES, BEFORE)
        settings = [method for method in methods if not method.is_peer and method.name not in fixed]
        print(f"\n{choose(rows, settings, given.on, given.against)}")


if __name__ == "__main__":
    main()
