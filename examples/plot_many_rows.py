"""
More rows than exact kernels can take
=====================================

With exact kernels the time grows with the cube of the number of unlabeled rows. Beyond 2000 of them kernels are
approximated by landmark rows, and the time grows with the number of rows.
"""

from time import perf_counter

import matplotlib.pyplot as plt

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

counts = {"exact": [250, 500, 1000], "nystroem": [250, 1000, 4000]}
seconds = {kind: [] for kind in counts}
accuracy = {kind: [] for kind in counts}
for kind, rows in counts.items():
    for n in rows:
        data = make_multiview_gaussian(n, n_features=10, separation=(1.3, 1.0), labeled=30, random_state=0)
        model = CMVMED(
            views=data.views,
            approximation=150 if kind == "nystroem" else kind,
            members=None,
        )
        start = perf_counter()
        model.fit(data.data, data.y)
        seconds[kind].append(perf_counter() - start)
        accuracy[kind].append(model.score(data.data[data.y == -1], data.target[data.y == -1]))

# %%
# ``approximation="auto"``, the default, changes from one to the other by itself.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for kind, style in (("exact", "o-"), ("nystroem", "s--")):
    axes[0].semilogx(counts[kind], seconds[kind], style, label=kind)
    axes[1].semilogx(counts[kind], accuracy[kind], style, label=kind)
axes[0].set(xlabel="rows", ylabel="seconds of a fit")
axes[1].set(xlabel="rows", ylabel="accuracy on unlabeled rows", ylim=(0.5, 1))
axes[0].legend()
for axis in axes:
    axis.set_xticks([250, 500, 1000, 2000, 4000], labels=["250", "500", "1000", "2000", "4000"])
    axis.minorticks_off()
plt.show()
