"""What each view alone says of a row, as far as held-out labels bear it out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cmvmed.model.evaluate import member_logits
from cmvmed.model.fitted_model import Model
from cmvmed.model.predict import probabilities_by_view
from cmvmed.numerics.softmax import softmax
from cmvmed.numerics.types import Array, BoolArray, Matrix

MEMBER = "view {}"  # name of the member of a view


def view_worths(members: Mapping[str, Any], view_names: Sequence[str]) -> dict[str, float]:
    """By view, what its member is worth: 1 if there is none, or if no label was held out."""
    known = {name: float(worth) for name, worth in zip(members["name"], members["worth"], strict=True)}
    found = {name: known.get(MEMBER.format(name), 1.0) for name in view_names}
    return {name: 1.0 if np.isnan(worth) else worth for name, worth in found.items()}


def probabilities_of_views(
    model: Model, worths: Mapping[str, float], matrices: Sequence[Matrix], present: Sequence[BoolArray]
) -> dict[str, Array]:
    """By view (n, K): w p + (1 - w) r, with w its worth, p of its member and r the class prior, which rows without it get.

    It is the mean of two models, the view's and that of the class shares, by the likelihood of the held-out labels. A view
    without a member has the probabilities of the consensus.
    """
    usable, r = model.usable(present), model.class_prior
    names = {MEMBER.format(view): view for view in worths}
    members = [member for member in model.in_use if member.name in names]
    found = dict(zip(worths, probabilities_by_view(model, matrices, present), strict=True))
    for member in members:
        view = names[member.name]
        found[view] = worths[view] * softmax(member_logits([member], matrices, usable)[0]) + (1.0 - worths[view]) * r
    return {view: np.where(has[:, None], p, r) for (view, p), has in zip(found.items(), usable, strict=True)}
