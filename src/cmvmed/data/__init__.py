"""From the user's X and y to matrices: which columns are which view, labels, and where the rows are stored.

===========  ====================================================================================
layout       which columns of X belong to which view
validation   tables of numbers, missing views, bad cells
labels       y with unlabeled rows
groups       rows that are held out together
row_hashes   which rows are equal
reading      X and y, opened in one way whatever they are
memory       how much of it a fit may use
array_api    arrays of other libraries
sources      rows in memory, in files or in dask collections, read in chunks
===========  ====================================================================================
"""
