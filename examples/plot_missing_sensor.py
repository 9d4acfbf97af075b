"""
When a sensor is missing
========================

Sensors fail, and were installed at different times. Here each row loses its second sensor with a given probability, in
training as in prediction. Rows are not dropped and nothing is filled in: the other sensor decides.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

data = make_multiview_gaussian(600, n_features=8, separation=(1.0, 1.6), labeled=40, random_state=1)
lost = np.random.default_rng(0).uniform(size=600)
shares = [0.0, 0.2, 0.4, 0.6, 0.8]

# %%
# A view is missing in a row if all its values are NaN.

right = {"all rows": [], "rows with both sensors": [], "rows with the first sensor only": []}
for share in shares:
    X = data.data.copy()
    X[lost < share, data.views["view2"]] = np.nan
    model = CMVMED(views=data.views).fit(X, data.y)
    hits, new = model.predict(X) == data.target, data.y == -1
    rows = {"all rows": new, "rows with both sensors": new & (lost >= share)}
    rows["rows with the first sensor only"] = new & (lost < share)
    for name, mask in rows.items():
        right[name].append(hits[mask].mean() if mask.any() else np.nan)

# %%
# The lines below "all rows" and above it are those of rows without and with the second sensor.

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), style in zip(right.items(), ("o-", "^--", "s--"), strict=True):
    axis.plot(shares, values, style, label=name)
axis.set(xlabel="share of rows without the second sensor", ylabel="accuracy on unlabeled rows", ylim=(0.5, 1.0))
axis.legend()
plt.show()
