"""Figure 1, the information projection: ``python -m benchmarks.figure1``.

Writes docs/figure1_before.svg and docs/figure1_after.svg, and the numbers in them to benchmarks/results/figure1.md. No
data files are needed.
"""

from benchmarks.provenance import RESULTS, ROOT, write
from experiments.report.projection import (
    Projection,
    divergence,
    example,
    figures,
    geometric_mean,
    mean_divergence,
    standalone,
)


def table() -> str:
    """The distributions in both figures, and their divergences."""
    found = example()
    classes = [f"class {name}" for name in found.before.classes]
    head = ["", *classes, "KL(consensus ‖ row)", "mean of KL(row ‖ view)"]
    lines = [head, ["---"] * len(head), *_lines("before", found.before), *_lines("after", found.after)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _lines(when: str, shown: Projection) -> list[list[str]]:
    rows = {f"view {name}": p for name, p in zip(shown.view_names, shown.views, strict=True)}
    rows["arithmetic mean of the views"] = shown.arithmetic_mean
    rows["geometric mean of the views"] = geometric_mean(shown.views, shown.weights)
    rows["consensus"] = shown.consensus
    return [
        [
            f"{when}: {name}",
            *(f"{share:.3f}" for share in p),
            f"{divergence(shown.consensus, p):.3f}",
            f"{mean_divergence(p, shown.views, shown.weights):.3f}",
        ]
        for name, p in rows.items()
    ]


def main() -> None:
    before, after = figures(example())
    (ROOT / "docs" / "figure1_before.svg").write_text(standalone(before))
    (ROOT / "docs" / "figure1_after.svg").write_text(standalone(after))
    write(RESULTS / "figure1.md", table(), "python -m benchmarks.figure1")
    print(table())


if __name__ == "__main__":
    main()
