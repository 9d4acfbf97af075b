"""Solvers of the other multi-view methods, for the estimators :class:`cmvmed.SVM2K`, :class:`cmvmed.MVMED`, :class:`cmvmed.CoRLS`.

=================  ===================================================
duals              the duals of SVM-2K and MV-MED
coregularization   the co-regularization kernel of CoRLS, and its losses
=================  ===================================================
"""
