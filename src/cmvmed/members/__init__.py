"""Classifiers of several kinds, weighed by held-out labels and pooled, among them the consensus of the paper.

A *member* is one such classifier: a distribution over the classes for each row. With few labels none of them is best
on all data, so several are fitted and pooled, with weights set by labels that each did not see.

================  ============================================================================================
pool              the default in its order: fit the members, calibrate, weigh and pool them
contract          what members are made from, and what every member gives
kernel_members    the members that are made of kernels: views, discriminant analysis, graphs of nearest rows
centered_kernels  centered kernels of one view, between any rows and the labeled ones
solvers           ridge regression and discriminant analysis, by the products of labeled rows
forest_members    the members that are forests of randomized trees
stacking          from scores to probabilities, and the weights of several members
shares            the share of each class among the unlabeled rows, and how far predictions follow it
accuracy          the accuracy to expect
judged_labels     labels as the pool predicts them without their help
random_labels     the accuracy that labels of random rows show
================  ============================================================================================
"""
