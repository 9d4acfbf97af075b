"""Classifiers learned from the labels, weighed by held-out labels, beside the consensus of the paper.

An *opinion* is one such classifier: a distribution over the classes for each row. With few labels none of them is best
on all data, so several are fitted and pooled, with weights set by labels that each did not see.

================  ============================================================================================
centered_kernels  centered kernels of one view, between any rows and the labeled ones
candidates        which opinions there are, and of which kernels each is made
ridge             kernel ridge regression with its exact leave-group-out scores
stacking          from scores to probabilities, and the weights of several opinions
shares            the share of each class among the unlabeled rows
pool              all of these in order: the pool of the opinions
mixture           fits the pool, and puts it and the consensus together, judged by held-out labels
accuracy          scales and weights of the two, and the expected accuracy
================  ============================================================================================
"""
