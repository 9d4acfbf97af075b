"""Every automatic default, one module each: pure functions that return values. Their tuned numbers are in :mod:`.tuning`.

========================  ==============================================================
approximation             exact kernels or landmark rows
agreement                 view weights, and λ for ``consensus_weight="auto"``
neighbors                 the graph of nearest rows as an additional view
class_prior               class shares from the labels
ranks, anchors            class shares from the unlabeled rows, for two classes
safeguard                 a smaller λ where the consensus contradicts the labels
cross_fitting             folds of the labeled rows and fits without their labels
calibration               probability scale and accuracy estimate
plan                      all of the above in order: settings -> :class:`cmvmed.core.annealing.Plan`
========================  ==============================================================
"""
