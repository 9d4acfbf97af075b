"""Settings and versions, and the command that makes the model again."""

import platform
from dataclasses import fields
from importlib.metadata import version

import cmvmed
from cmvmed.pages.formatting import plural
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.report.safe_text import clean, short

__all__ = ["DEFAULT_COMMAND", "fit_facts", "settings_lines", "versions"]

DEFAULT_COMMAND = "cmvmed train"
PACKAGES = ("numpy", "scipy", "scikit-learn")


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
    default_model = type(facts.model)().get_params()
    for name, value in facts.model.get_params().items():
        if name in default_model and repr(value) != repr(default_model[name]) and name != "labels_drawn":
            found.append((f"[model] {name}", short(_text(value), 200)))
    return found


def fit_facts(facts: ModelFacts) -> list[tuple[str, str]]:
    """How the fit ended."""
    model = facts.model
    kind = {"exact": "exact", "nystroem": "approximated by landmark rows"}.get(model.approximation_["kind"], "other")
    return [
        ("Converged", "yes" if model.converged_ else "no; raise max_iter in [model]"),
        ("Sweeps", f"{model.n_iter_:,}"),
        ("Weight of the consensus", f"{model.consensus_weight_:.2f}"),
        ("Kernels", kind),
        ("Opinions", plural(len(model.opinions_["name"]), "classifier")),
    ]


def versions() -> str:
    """Versions of the packages that wrote the page."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"cmvmed {cmvmed.__version__}, Python {platform.python_version()}, {packages}"


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(repr(item) for item in value)
    return repr(value) if isinstance(value, bool | float | int) else str(value)
