"""What a fit leaves behind, and all that is done with it.

=============  ====================================================================================
terms          the contract of a term: one function of new rows
expansions     terms that are kernel expansions of one view
graph_votes    terms that are votes of the nearest nodes of a graph
forests        terms that are votes of decision trees
fitted_model   members, their pool, and the model
evaluate       logits of many rows, with what terms share computed once (row_forms, graph_means)
predict        scores, classes and probabilities of new rows, wherever they are stored
explain        the share of each view in a score
uncertainty    posterior variances, and prediction sets
compact        a model through fewer training rows
formulas       the formulas of a model, for other programs and array libraries
onnx_model     these as an ONNX model
array_program  these computed where the user's arrays are
file           model files (saved_types, encoding, decoding, archive)
=============  ====================================================================================

To add a kind of term, write its class in a file of its own, by the contract in ``terms``, and name it in
``saved_types.TERMS``.
"""
