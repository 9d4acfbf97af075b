"""How good and how safe the default of CMVMED is on many data sets, beside its peers: ``python -m benchmarks.suite``.

Rows are kept in a file as they come, so that a run that was stopped goes on where it was. Splits from 1000 on are for
development, those from 0 on for reports. ``--variant wide='{"consensus_weight": 0.1}'`` adds CMVMED with other
settings as one more method, and ``--choose`` says which of them is best by leaving one data set out at a time.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.suite.choose import choose
from benchmarks.suite.methods import METHODS, ON_REQUEST, STARTS, Method, variant
from benchmarks.suite.report import report
from benchmarks.suite.run import ChangedSettingsError, possible_cells, run, usable_methods, wanted_keys
from benchmarks.suite.sets import LOADERS
from benchmarks.suite.splits import BUDGETS, DRAWS
from benchmarks.suite.store import Store


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=LOADERS, default=list(LOADERS), metavar="SET")
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
    parser.add_argument("--on", choices=("unlabeled", "held_out"), default="unlabeled", help="rows that are compared")
    parser.add_argument("--against", choices=STARTS, default="start", help="method against which harm is measured")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    parser.add_argument("--retry-failed", action="store_true")
    parser.add_argument("--choose", action="store_true", help="choose among CMVMED and its variants")
    return parser.parse_args(arguments)


def _variant(text: str) -> Method:
    try:
        return variant(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main() -> None:
    given = parse()
    methods = usable_methods([*(METHODS[name] for name in given.methods), *given.variant])
    cells = possible_cells(given.sets, given.budgets, given.draws, given.rows)
    splits = range(given.first, given.first + given.splits)
    wanted = wanted_keys(cells, methods, splits, given.rows)
    store = Store(given.results)
    if not given.no_run:
        try:
            run(wanted, store, given.jobs, given.retry_failed)
        except ChangedSettingsError as error:
            sys.exit(str(error))
    rows = [row for key, row in store.rows().items() if key in wanted]
    print(report(rows, methods, given.on, given.against))
    if given.choose:
        settings = [method for method in methods if not method.is_peer and method.name not in (*STARTS, *ON_REQUEST)]
        print(f"\n{choose(rows, settings, given.on, given.against)}")


if __name__ == "__main__":
    main()
