"""The paper's claims for three versions of its method side by side: as printed, completed, and our default.

*As printed* is the algorithm of the paper's section 4, *completed* the same with the linear term that its derivation gives
(``CMVMED.paper()``), and *our default* is ``CMVMED()``, of which the paper's method is one part. Each is compared with the
baselines of the paper alone: the paper's method with those that have its kernel, our default with those of any kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cmvmed.pages.formatting import join_names, plural
from experiments.methods import CMV_MED, CMV_MED_PAPER, CMV_MED_PRINTED, with_kernel, without_kernel
from experiments.report.claims import Claim, Finding
from experiments.report.grouping import by_setting, is_paper_baseline, summaries
from experiments.result_rows import ResultRow

# Names of each version in the rows; of several in a setting the first counts.
VERSIONS = {
    "as printed": (CMV_MED_PRINTED,),
    "completed": (CMV_MED_PAPER,),
    "our default": (CMV_MED, with_kernel(CMV_MED, "rbf")),
}
Decide = Callable[[Sequence[ResultRow]], Sequence[Claim]]


def rows_of_version(rows: Sequence[ResultRow], version: str) -> list[ResultRow]:
    """The paper's baselines, and one version of the method under the name of CMV-MED, where a setting has it."""
    any_kernel = CMV_MED in VERSIONS[version]
    found: list[ResultRow] = []
    for members in by_setting(rows).values():
        names = {row.method for row in members}
        own = next((name for name in VERSIONS[version] if name in names), None)
        if own is not None:
            baselines = [row for row in members if is_paper_baseline(row.method)]
            found += [row for row in baselines if any_kernel or row.method == without_kernel(row.method)]
            found += [replace(row, method=CMV_MED) for row in members if row.method == own]
    return found


@dataclass(frozen=True)
class ComparedClaim:
    """A claim of the paper, decided for each version of its method."""

    versions: dict[str, Claim]

    @property
    def claim(self) -> Claim:
        """The claim itself; its findings are those of the last version."""
        return next(reversed(self.versions.values()))

    @property
    def lines(self) -> list[tuple[str, list[Finding | None]]]:
        """By setting, the finding for each version."""
        by_version = [{f.where: f for f in claim.findings} for claim in self.versions.values()]
        where = dict.fromkeys(name for findings in by_version for name in findings)
        return [(name, [findings.get(name) for findings in by_version]) for name in where]

    @property
    def sentence(self) -> str:
        """The verdicts for each version."""
        parts = []
        for name, claim in self.versions.items():
            total = len(claim.findings)
            verdicts = [f"{verdict.label} in {count} of {total}" for verdict, count in claim.tally]
            parts.append(f"{name}: {', '.join(verdicts) or 'no results'}")
        return "; ".join(parts)


def compared_claims(rows: Sequence[ResultRow], decide: Decide) -> list[ComparedClaim]:
    """The claims that ``decide`` makes of rows, for every version."""
    by_version = {name: decide(rows_of_version(rows, name)) for name in VERSIONS}
    return [
        ComparedClaim(dict(zip(by_version, claims, strict=True))) for claims in zip(*by_version.values(), strict=True)
    ]


def wins(rows: Sequence[ResultRow]) -> dict[str, dict[str, tuple[int, int]]]:
    """By protocol and version: data sets on which its mean is above those of all the paper's baselines, and all data sets."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for version in VERSIONS:
        for setting, members in by_setting(rows_of_version(rows, version)).items():
            means = {method: entry.mean for method, entry in summaries(members, "accuracy").items()}
            own = means.pop(CMV_MED, None)
            if own is not None and means:
                by_version = found.setdefault(setting.protocol, {})
                ahead, total = by_version.get(version, (0, 0))
                by_version[version] = ahead + (own > max(means.values())), total + 1
    return found


def wins_phrase(by_version: dict[str, tuple[int, int]]) -> str:
    """On how many data sets each version is ahead, in words."""
    return join_names(
        [f"{name} on {ahead} of {plural(total, 'data set')}" for name, (ahead, total) in by_version.items()]
    )
