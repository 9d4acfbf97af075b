"""Fitted models as ONNX graphs of standard operators, for programs without Python and for other array libraries.

===============  ==============================================================================
graph_builder    formulas with tensors become nodes of a graph, equal formulas one node
view_inputs      the inputs: missing views, gaps, scaling
expansions       kernel expansions over training rows or landmarks
nearest_nodes    scores by the nearest nodes of a graph of training rows
opinion_scores   the pool of the opinions that are learned from the labels
compared_rows    the training rows that a graph holds, each table once
onnx_file        labels, metadata and size of the model
array_program    a graph computed by the functions of an array library, without a file
===============  ==============================================================================

Numbers are computed in double precision, as the library does, whatever the type of inputs and outputs: in single
precision, rounding would choose other nearest rows. ``estimators._onnx_model`` puts the parts together, and
``estimators._array_api`` runs them where the user's arrays are.
"""
