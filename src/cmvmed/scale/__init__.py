"""More rows than memory: a sample to anneal on, and passes over all rows in chunks.

============  ========================================================================
sampling      the rows that are annealed in memory, and larger samples
passes        sums over chunks of rows, in memory, files or clusters
array_passes  the same where arrays of other libraries are
streamed      sweeps over such rows, at the temperature of the last stage
continuation  a fit to a sample continued on more rows, up to all
row_change    what all rows would still change
============  ========================================================================
"""
