"""More rows than memory: how much may be used, a sample to anneal on, and passes over all rows in chunks.

==========  ==========================================================================
memory      how much memory may be used
sampling    the rows that are annealed in memory
passes      sums over chunks of rows, in memory, files or clusters
streamed    the last stage continued on all rows
==========  ==========================================================================
"""
