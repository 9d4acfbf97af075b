"""Every automatic default, one module each: pure functions that return values. Their tuned numbers are in :mod:`.tuning`.

========================  ============================================================================
approximation             exact kernels or landmark rows
consensus_weight          view weights, and λ for ``consensus_weight="auto"``
labeled_rows              the labeled rows, their groups and folds
class_prior               class shares from the labels
cross_fitting             the consensus without the labels of each fold
suggestions               which rows to label next
plan                      view weights, λ and shares -> :class:`cmvmed.core.annealing.Plan`
========================  ============================================================================
"""
