"""The method of the paper. Of cmvmed it imports ``numerics`` alone.

T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based multi-view
maximum entropy discrimination", ICASSP 2015. Where its equations and steps are computed; "theory" is the letter of the
completed equation in ``docs/theory.md``, which also lists the differences. Names begin with the module of this package.

==================================  ======  =============================================================
paper                               theory  function
==================================  ======  =============================================================
Eq. (1), MED of one view            (C)     ``posterior.supervised_state``
Eq. (2), the CMV-MED problem        (A)     ``problem.Problem`` (views, rows, labels, C)
Eqs. (3), (4), expanded objective   (A)     ``objective.objective``, per view ``objective.view_objective``
Step 1, independent MEDs            (C)     ``annealing.supervised_start``
Step 2, loop over t                         ``annealing.anneal``; one stage: ``annealing.run_stage``
Step 2(a), consensus q              (E)     ``consensus.update_consensus``
Information projection, Figure 1    (E′)    ``consensus.divergence``
Step 2(b), update of one view       (B-D)   ``annealing.step_view``, ``posterior.update_view``
Second-order expansion, ν and M             ``surrogates.Newton``, ``surrogates.logistic_curvature``
The expansion as printed                    ``surrogates.AsPrinted``
Eq. (5), dual                       (C)     ``posterior.solve_dual``, ``box_qp.solve_box_qps``
Eqs. (6), (7), σ² times K-tilde     (B)     ``full_kernel.CholeskyConditioned.S_LL``,
                                            ``full_kernel.SpectralConditioned``, ``low_rank.WeightGaussian``
Posterior mean and covariance       (B-D)   ``posterior.ViewState``, ``full_kernel.predictive_covariance``
Step 2(c), λ_t                              ``annealing.Schedule.stage``
Step 3, prediction                  (E)     ``consensus.pool``, ``consensus.soft_labels``
==================================  ======  =============================================================

The Gaussian kernel of section 5 is in :mod:`cmvmed.numerics.kernels`. Step 3 for new rows is in ``cmvmed.model``: the mean of a
view is a term (``model.expansions.Expansion``), the consensus a member that pools the terms (``model.fitted_model.Member``).
"""
