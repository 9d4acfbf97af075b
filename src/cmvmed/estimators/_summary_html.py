"""What a notebook shows of a fitted CMVMED below scikit-learn's diagram: verdict, accuracy, views and members."""

from typing import TYPE_CHECKING

import numpy as np

from cmvmed._html import html_box, html_interval, html_sentence, html_table

if TYPE_CHECKING:
    from cmvmed.estimators.cmvmed import CMVMED


def summary_html(model: "CMVMED") -> str:
    """The summary of a fitted model."""
    return html_box(*_verdict(model), _views(model), _members(model))


def _verdict(model: "CMVMED") -> list[str]:
    if model._accuracy is None:
        return [html_sentence("The accuracy is not known: no labels were held out.", mark="open")]
    estimate, largest = model.accuracy_estimate(), int(model.class_prior_.argmax())
    share = float(model.class_prior_[largest])
    kind, label = estimate.judge(share)
    bar = [html_interval(estimate.low, estimate.mean, estimate.high, other=share)] if estimate.is_known else []
    beside = f"Always naming {model.classes_[largest]!s} would be right for {share:.1%} (thin line)." if bar else ""
    return [html_sentence(f"{label}.", mark=kind, bold=True), *bar, html_sentence(f"{estimate} {beside}")]


def _views(model: "CMVMED") -> str:
    """Columns, part in the consensus, and what held-out labels say of each view alone."""
    layout, members = model._model.schema.layout, model.members_
    alone = dict(zip(members["name"], members["accuracy"], strict=True))
    rows = [
        (name, width, f"{weight:.2f}", _percentage(alone.get(f"view {name}", np.nan)))
        for name, width, weight in zip(model.view_names_, layout.widths, model.view_weights_, strict=True)
    ]
    return html_table(("view", "columns", "weight in the consensus", "held-out accuracy alone"), "lrrr", rows)


def _members(model: "CMVMED") -> str:
    members = model.members_
    order = np.argsort(-np.asarray(members["weight"]), kind="stable")
    rows = [
        (members["name"][k], f"{members['weight'][k]:.2f}", _percentage(members["accuracy"][k])) for k in order.tolist()
    ]
    title = f"Members of the pool ({len(rows)})"
    return html_table(("member", "weight", "held-out accuracy"), "lrr", rows, title=title)


def _percentage(share: float) -> str:
    return "–" if np.isnan(share) else f"{share:.1%}"
