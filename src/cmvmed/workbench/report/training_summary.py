"""What the model was learned from and how: rows, labels by class, views, features, settings and versions."""

import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from typing import Any

import numpy as np

import cmvmed
from cmvmed.pages.formatting import DASH, LEVEL, MINUS, clean, format_percentage, join_names, plural, short
from cmvmed.workbench.checks import describe_rows
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.sensor_encoders import SensorEncoder
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.view_encoders import ViewEncoder, absent_rows

MAX_COLUMNS = 8  # whose names are listed
KIND_WORDS = {  # of columns, by the kind of their encoder: one, and several
    "number": ("number", "numbers"),
    "date": ("date", "dates"),
    "category": ("category", "categories"),
    "text": ("text", "texts"),
    "signals": ("signal", "signals"),
}
SHARES_KNOWN = 0.01  # width of the widest plausible range, below which class shares are known
DEFAULT_COMMAND = "cmvmed train"
PACKAGES = ("numpy", "scipy", "scikit-learn")


def feature_lines(facts: ModelFacts) -> list[tuple[str, ...]]:
    """The kinds of features that were compared for all signals, those of a view together; the cells of the table."""
    return [
        line
        for encoder in facts.project.encoders or []
        for column in encoder.columns
        if isinstance(column, SensorEncoder)
        for line in _kinds(short(encoder.name), column)
    ]


def _kinds(view: str, encoder: SensorEncoder) -> list[tuple[str, ...]]:
    chosen = encoder.features.n_features_by_kind
    if not encoder.compared:
        return [(view, encoder.features.kind, "yes", f"{sum(chosen.values()):,}", DASH, DASH, DASH)]
    columns = (encoder.compared, encoder.held_out_r2, encoder.agreement, encoder.score)
    lines: list[tuple[str, ...]] = []
    for compared, r2, agreement, score in zip(*columns, strict=True):
        kinds = compared.split("+")
        is_chosen = all(kind in chosen for kind in kinds)
        n_features = f"{sum(chosen[kind] for kind in kinds):,}" if is_chosen else DASH
        figures = (n_features, _fixed(r2), _fixed(agreement), _fixed(score))
        lines.append((view, compared, "yes" if is_chosen else "no", *figures))
    return lines


def _fixed(value: float) -> str:
    return DASH if np.isnan(value) else f"{value:.2f}".replace("-", MINUS)


def row_facts(facts: ModelFacts) -> list[tuple[str, str]]:
    """Name and value of each fact about the rows."""
    found = [
        ("Data", short(facts.project.settings.data.path or "a file for each view")),
        ("Rows", f"{facts.n_rows:,}, of which {facts.n_labeled:,} are labeled"),
        ("Classes", join_names(facts.class_names[:6]) + (" and others" if len(facts.class_names) > 6 else "")),
        ("Views", join_names([short(name) for name in facts.model.view_names_])),
    ]
    if facts.table.groups is not None:
        n_groups = len(set(facts.table.groups))
        found.append(("Groups", f"{n_groups:,} of {short(facts.group_name)}, held out together"))
    return found


def class_lines(facts: ModelFacts) -> list[tuple[str, ...]]:
    """Name, labels, their share, estimated share and plausible shares of each class, the largest first."""
    counts, shares, sensitivity = facts.label_counts, facts.model.class_prior_, facts.model.share_sensitivity_
    plausible = zip(sensitivity["low"], sensitivity["high"], strict=True)
    ranges = [_range(low, high) for low, high in plausible]
    order = np.lexsort([np.arange(len(counts)), -counts])
    return [
        (
            facts.class_names[k],
            f"{counts[k]:,}",
            format_percentage(counts[k] / counts.sum()),
            format_percentage(shares[k]),
            ranges[k],
        )
        for k in order
    ]


def share_sentences(facts: ModelFacts) -> list[str]:
    """How much depends on the class shares, and what to do about it."""
    found, estimate = facts.model.share_sensitivity_, facts.estimate
    if (found["high"] - found["low"]).max() < SHARES_KNOWN:
        return ["The class shares are known, so nothing depends on their estimate."]
    sentences = [
        f"The class of {format_percentage(found['changed'], 0)} of the unlabeled rows is another one somewhere within the "
        "plausible shares."
    ]
    if estimate is not None:
        low, high = max(estimate.low + found["accuracy_low"], 0.0), min(estimate.high + found["accuracy_high"], 1.0)
        sentences.append(
            f"The {format_percentage(LEVEL, 0)} interval of the accuracy, {_range(estimate.low, estimate.high)} for the estimated "
            f"shares, is {_range(low, high)} for all plausible ones."
        )
    return sentences


def share_line(facts: ModelFacts) -> str:
    """The line of a project file that states the plausible shares, for a user who knows better ones to change."""
    found = facts.model.share_sensitivity_
    low, high = np.floor(100.0 * found["low"]) / 100.0, np.ceil(100.0 * found["high"]) / 100.0
    ranges = zip(facts.model.classes_.tolist(), low.tolist(), high.tolist(), strict=True)
    return clean(toml_line("class_prior", {str(name): [a, b] for name, a, b in ranges}))


def _range(low: float, high: float) -> str:
    return f"{100.0 * low:.0f} to {format_percentage(high, 0)}"


def view_lines(facts: ModelFacts) -> list[tuple[str, ...]]:
    """Name, columns, features, rows without it and empty cells of each view."""
    encoders = {encoder.name: encoder for encoder in facts.project.encoders or []}
    in_files: Mapping[str, Any] = {} if facts.raw is None else describe_rows(facts.raw)["views"]
    lines: list[tuple[str, ...]] = []
    for name, matrix in facts.table.views.items():
        n_absent = int(absent_rows(matrix).sum())
        missing = in_files[name]["cells_missing"] if name in in_files else None
        lines.append(
            (
                short(name),
                _columns(encoders[name]) if name in encoders else DASH,
                f"{matrix.shape[1]:,}",
                f"{n_absent:,} ({format_percentage(n_absent / facts.n_rows, 0)})" if n_absent else "0",
                DASH if missing is None else f"{missing:,}",
            )
        )
    return lines


def _columns(encoder: ViewEncoder) -> str:
    """Kinds and names of the columns of a view."""
    kinds = Counter(column.kind for column in encoder.columns for _ in column.sources)
    names = [short(name, 24) for name in encoder.column_names]
    more = len(names) - MAX_COLUMNS
    listed = ", ".join(names[:MAX_COLUMNS]) + (f" and {more} more" if more > 0 else "")
    return f"{join_names([plural(count, *KIND_WORDS[kind]) for kind, count in kinds.items()])}: {listed}"


def settings_lines(facts: ModelFacts) -> list[tuple[str, str]]:
    """What the project file sets and the parameters of the model that are not defaults, by name."""
    data, defaults = facts.project.settings.data, DataSettings()
    found = [
        (f"[data] {field.name}", clean(_text(getattr(data, field.name))))
        for field in fields(DataSettings)
        if getattr(data, field.name) != getattr(defaults, field.name)
    ]
    for view in facts.project.settings.views:
        what = view.files or ", ".join(view.columns) or "all columns"
        found.append((f"[views] {short(view.name)}", clean(what if view.path is None else f"{view.path}: {what}")))
        signal = {"features": view.features, "sampling_rate": view.sampling_rate, "offset": view.offset or None}
        found += [
            (f"[views] {short(view.name)}, {key}", _text(value)) for key, value in signal.items() if value is not None
        ]
    found += [(f"[columns] {short(name)}", clean(kind)) for name, kind in facts.project.settings.kinds.items()]
    renamed = facts.project.settings.renamed
    found += [(f"[classes] {short(label)}", clean(name)) for label, name in renamed.items()]
    default_model = type(facts.model)().get_params()
    for name, value in facts.model.get_params().items():
        if name in default_model and repr(value) != repr(default_model[name]) and name != "labels_drawn":
            found.append((f"[model] {name}", short(_text(value), 200)))
    return found


def fit_facts(facts: ModelFacts) -> list[tuple[str, str]]:
    """How the fit ended."""
    model = facts.model
    missed = max(model.approximation_.get("residual", {}).values(), default=0.0)
    landmarks = f"approximated by landmark rows, which miss {missed:.0%}"
    kind = {"exact": "exact", "nystroem": landmarks}.get(model.approximation_["kind"], "other")
    return [
        ("Converged", "yes" if model.converged_ else "no; raise max_iter in [model]"),
        ("Sweeps", f"{model.n_iter_:,}"),
        ("Weight of the consensus", f"{model.consensus_weight_:.2f}"),
        ("Kernels", kind),
        ("Members", plural(len(model.members_["name"]), "classifier")),
    ]


def versions() -> str:
    """Versions of the packages that wrote the page."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"cmvmed {cmvmed.__version__}, Python {platform.python_version()}, {packages}"


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(repr(item) for item in value)
    return repr(value) if isinstance(value, bool | float | int) else str(value)
