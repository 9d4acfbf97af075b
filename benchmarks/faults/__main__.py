"""Run campaigns of faults: ``python -m benchmarks.faults``.

Each campaign draws seeded cases and looks for one that breaks a promise: see the docstrings of benchmarks/faults. A
failure prints a script that repeats it, simplified as far as 20 seconds allow; the exit code is then 1. Outcomes go
into benchmarks/results/faults.json, from which ``python -m benchmarks.pages`` makes the table in docs/robustness.md.
Cases that the file has are not repeated, so that an interrupted run continues (``--restart`` begins again), and
``--part 2/4`` runs every fourth case, for another machine; ``--merge`` joins the files of parts.

    python -m benchmarks.faults                                  all campaigns, minutes on two idle cores
    python -m benchmarks.faults --size nightly                   hours; split it with --part
    python -m benchmarks.faults --campaign fits --cases 20000
    python -m benchmarks.faults --campaign fits --seed 1 --case 1234    one case, with its description
"""

import argparse
import os
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.faults.campaign import NAMES, Campaign, Fault, campaign, draw_case, run_case, run_number, script
from benchmarks.faults.results import Record, merged, read_records, table, write_records
from benchmarks.provenance import commit

RESULTS = Path(__file__).resolve().parent.parent / "results" / "faults.json"
SAVE_SECONDS = 10.0


def run_campaign(
    of: Campaign, record: Record, n_cases: int, path: Path, others: list[Record], deadline: float | None = None
) -> None:
    """Run the cases that the record does not have, and write the file now and then."""
    saved = start = time.monotonic()
    before = record.seconds
    while record.n_done < n_cases and (deadline is None or time.monotonic() < deadline):
        failure = run_number(of, record.seed, record.first + record.n_done * record.step, record.tally)
        record.n_done += 1
        record.seconds = before + time.monotonic() - start
        if failure is not None:
            print(f"\nFAILURE in {of.name}, case {failure.number}: {failure.message}\n{failure.script}", flush=True)
        if time.monotonic() - saved > SAVE_SECONDS:
            saved = time.monotonic()
            write_records(path, merged([others, [record]]))
    write_records(path, merged([others, [record]]))


def show_case(of: Campaign, seed: int, number: int) -> int:
    """Run one case and print it; the exit code."""
    case = draw_case(of, seed, number)
    found = run_case(of, case)
    print(script(of, case))
    print(found if isinstance(found, str) else f"FAILURE: {found}")
    return int(isinstance(found, Fault))


def read_part(text: str) -> tuple[int, int]:
    """``2/4`` as (1, 4)."""
    part, _, of = text.partition("/")
    if not (part.isdecimal() and of.isdecimal() and 1 <= int(part) <= int(of)):
        raise argparse.ArgumentTypeError(f"a part is written as 2/4, not {text!r}")
    return int(part) - 1, int(of)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--campaign", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument("--size", choices=("ci", "nightly"), default="ci")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="cases of each campaign; by default as the size says")
    parser.add_argument("--case", type=int, help="run this case only, and print it")
    parser.add_argument(
        "--part", type=read_part, default=(0, 1), help="such as 2/4: every fourth case, from the second"
    )
    parser.add_argument("--seconds", type=float, help="time limit of each campaign")
    parser.add_argument("--restart", action="store_true", help="forget what the file has of these campaigns and seed")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--merge", type=Path, nargs="+", help="join these files into the output, and run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = parse(arguments)
    if given.case is not None:
        return max(show_case(campaign(name), given.seed, given.case) for name in given.campaign)
    records = read_records(given.output)
    if given.merge:
        write_records(given.output, merged([records, *map(read_records, given.merge)]))
        return 0
    with threadpool_limits(1):  # problems are small
        os.environ["OMP_NUM_THREADS"] = "1"  # of processes that campaigns start
        records, n_failures = run_campaigns(given, records)
    print(f"\n{table([one for one in records if one.seed == given.seed])}")
    return int(n_failures > 0)


def run_campaigns(given: argparse.Namespace, records: list[Record]) -> tuple[list[Record], int]:
    """Run the campaigns that are asked for; all records, and the number of failures."""
    n_failures = 0
    for name in given.campaign:
        of = campaign(name)
        record = Record(name, given.seed, *given.part)
        same = [one for one in records if one.key == record.key]
        record = same[0] if same and not given.restart else record
        record.commit = commit()
        others = [one for one in records if one.key != record.key]
        n_cases = given.cases or of.cases[given.size]
        n_part = len(range(record.first, n_cases, record.step))
        deadline = None if given.seconds is None else time.monotonic() + given.seconds
        run_campaign(of, record, n_part, given.output, others, deadline)
        records = [*others, record]
        n_failures += record.tally.n_failures
        print(
            f"{name}: {record.n_done} cases in {record.seconds:.0f} s, {record.tally.n_failures} failures",
            flush=True,
        )
    return records, n_failures


if __name__ == "__main__":
    raise SystemExit(main())
