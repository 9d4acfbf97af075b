"""From the user's X and y to matrices: which columns are which view, labels, scaling, and where the rows are stored.

=============  ====================================================================================
layout         which columns of X belong to which view
validation     tables of numbers, missing views, bad cells
labels         y with unlabeled rows
groups         rows that are held out together
imputation     single gaps filled
scaling        features on a common scale
view_data      a view's training rows with their kernel
inputs         X and y, opened by one path whatever they are
schema         the columns of X and their views, and the settings for reading it
external       X in files or dask collections
training_data  matrices, labels and weights of the training rows
sources        rows in memory, in files or in dask collections, read in chunks
=============  ====================================================================================
"""
