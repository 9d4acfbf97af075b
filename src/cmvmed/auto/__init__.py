"""Every automatic default, one module each: pure functions that return values. Their tuned numbers are in :mod:`.tuning`.

========================  ============================================================================
approximation             exact kernels or landmark rows
consensus_weight          view weights, λ for ``consensus_weight="auto"``, and the safeguard that lowers it
labeled_rows              the labeled rows, their groups and folds
neighbors                 the graph of nearest rows as an additional view
class_prior               class shares from the labels
anchors                   class shares from the unlabeled rows, for two classes
cross_fitting             the consensus without the labels of each fold
suggestions               which rows to label next
plan                      view weights, λ, neighbors and shares -> :class:`cmvmed.core.annealing.Plan`
========================  ============================================================================
"""
