"""
Which members count
===================

The consensus is pooled with other classifiers: of each view, discriminant analysis, graphs of nearest rows and
randomized trees. Labels that a member did not see set its weight, so that the pool differs from data set to data set.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import load_breast_cancer_views, load_digits_views, make_multiview_gaussian
from cmvmed.model_selection import hide_labels

gauss = make_multiview_gaussian(500, n_features=20, separation=(1.1, 0.8), random_state=0)
sets = {"digits": load_digits_views(), "breast cancer": load_breast_cancer_views(), "Gaussian views": gauss}
models = {}
for name, data in sets.items():
    y = hide_labels(data.target[:500], 40, random_state=0)
    models[name] = CMVMED(views=data.views).fit(data.data[:500], y)

# %%
# ``members_`` is a table with the weight of each member, and its accuracy on labels that it did not see. Members of
# single views are added up here, since the data sets have different views.


def group(name):
    """The kind of a member."""
    return "views" if name.startswith("view ") else name


kinds = list(dict.fromkeys(group(name) for model in models.values() for name in model.members_["name"]))
figure, axis = plt.subplots(figsize=(8, 3.5), layout="constrained")
left = np.zeros(len(models))
for kind in kinds:
    shares = [
        sum(w for n, w in zip(m.members_["name"], m.members_["weight"], strict=True) if group(n) == kind)
        for m in models.values()
    ]
    axis.barh(list(models), shares, left=left, label=kind)
    left += shares
axis.set(xlabel="weight", xlim=(0, 1))
axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=len(kinds), frameon=False)
plt.show()
