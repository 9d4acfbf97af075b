"""One table of accuracies from the output of the accuracy benchmark.

After ``python -m benchmarks.accuracy > benchmarks/results/accuracy.md``, ``python -m benchmarks.compact`` prints what the README
shows.
"""

import re
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "accuracy.md"


def read(text: str) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Tasks in order, and accuracy by method and task."""
    tasks: list[str] = []
    table: dict[str, dict[str, str]] = {}
    in_scores = False  # from a line "| method ..." to the next that is no line of a table
    for line in text.splitlines():
        heading = re.match(r"### ([^:]+): (\d+) labels", line)
        if heading:
            tasks.append(f"{heading[1]}, {heading[2]} labels")
        in_scores = line.startswith("| method") or (in_scores and line.startswith("|"))
        if in_scores and not line.startswith(("| method", "| ---")):
            method, accuracy = (cell.strip() for cell in line.strip("| ").split("|")[:2])
            table.setdefault(method, {})[tasks[-1]] = accuracy
    return tasks, table


def compact(text: str) -> str:
    """The table in Markdown, the best of each column in bold (the paper's own figure aside)."""
    tasks, table = read(text)
    best = {
        task: max(
            (row[task] for name, row in table.items() if "paper" not in name and row.get(task, "–") != "–"), key=mean_of
        )
        for task in tasks
    }
    lines = ["| method | " + " | ".join(tasks) + " |", "| --- |" + " --- |" * len(tasks)]
    for method, row in table.items():
        cells = [f"**{row[t]}**" if row.get(t) == best[t] and "paper" not in method else row.get(t, "–") for t in tasks]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mean_of(cell: str) -> float:
    return float(cell.split()[0])


if __name__ == "__main__":
    print(compact(RESULTS.read_text()))
