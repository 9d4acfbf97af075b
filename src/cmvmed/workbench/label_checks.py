"""Labels that look wrong: markers, classes that differ by case, too few labels."""

from collections.abc import Iterator, Sequence

from cmvmed.workbench.findings import Finding
from cmvmed.workbench.label_values import likely_markers, similar_classes
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.user_errors import abbreviate, plural

__all__ = ["label_findings"]

FEW_LABELS = 3  # labels per class below which nothing can be held out from all folds


MANY_CLASSES = 20


def label_findings(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    """Labels that are no classes, classes that are written differently, and classes with few labels."""
    counts, n_rows = rows.labels.counts, rows.table.n_rows
    n_labeled = sum(counts.values())
    sure, possible = likely_markers(counts, data)
    for label in sure:
        share = f"{plural(counts[label], 'row')}, {100 * counts[label] / n_rows:.0f} %"
        yield Finding(
            "error",
            "marker",
            f"The label {label!r} ({share}) looks like a marker for rows that are not labeled and would be learned as a class. Add "
            f"it to unlabeled in [data], as in unlabeled = {_toml_list([*data.unlabeled, label])}; if it is a class, list all "
            "classes in classes.",
        )
    for label in possible:
        most = counts[label] > n_rows / 2
        yield Finding(
            "error" if most else "warning",
            "marker",
            f"The label {label!r} ({plural(counts[label], 'row')}{', most of all' if most else ''}) may mark rows that are not "
            "labeled. Add it to unlabeled in [data]; if it is a class, list all classes in classes.",
        )
    for group in similar_classes([label for label in counts if label not in data.classes]):
        listed = ", ".join(f"{label!r} ({counts[label]})" for label in group)
        yield Finding(
            "error",
            "similar_classes",
            f"The classes {listed} differ only by case, blanks or hyphens. Write them alike in the data; if they are "
            "different classes, list all classes in classes in [data].",
        )
    yield from _number_of_labels(rows, data, n_labeled)
    left = {label: count for label, count in counts.items() if label not in sure}
    single = [label for label, count in left.items() if count == 1]
    if single and len(left) > 1:
        yield Finding(
            "warning",
            "single_label",
            f"{plural(len(single), 'class has', 'classes have')} a single label: {abbreviate(single)}. How well "
            f"{'it is' if len(single) == 1 else 'they are'} recognized cannot be estimated; label at least {FEW_LABELS} rows of "
            "each class.",
        )


def _number_of_labels(rows: ProjectRows, data: DataSettings, n_labeled: int) -> Iterator[Finding]:
    counts, n_rows = rows.labels.counts, rows.table.n_rows
    if data.labels is None:
        yield Finding(
            "error",
            "no_labels",
            "labels is not set in [data]; set it to the column, or file with id and label, of the labels.",
        )
    elif n_labeled == 0:
        markers = abbreviate(data.unlabeled)
        yield Finding(
            "error",
            "no_labels",
            f"No row is labeled: all {n_rows} labels are empty or one of {markers}. Label some rows of each class, or "
            "correct unlabeled in [data].",
        )
    elif len(counts) == 1:
        yield Finding(
            "error",
            "one_class",
            f"All labeled rows have the class {next(iter(counts))!r}, where at least 2 classes are needed. Label rows of "
            "another class; if the empty cells are the other class, give it a name.",
        )
    elif len(counts) > max(MANY_CLASSES, n_labeled / 2):
        yield Finding(
            "error",
            "many_classes",
            f"The labels have {len(counts)} different values in {n_labeled} rows, as a measured number or an identifier has. Set "
            "labels in [data] to a column of classes, or make classes of ranges of the number.",
        )
    if n_labeled == n_rows and len(counts) > 1:
        yield Finding(
            "note",
            "all_labeled",
            "All rows are labeled, so there is nothing to learn from unlabeled rows. Rows without a label may be in the "
            "data too; they need an empty cell.",
        )


def _toml_list(texts: Sequence[str]) -> str:
    quoted = [f'"{text}"' for text in texts]
    return f"[{', '.join(quoted)}]"
