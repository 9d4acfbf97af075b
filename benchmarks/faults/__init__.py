"""Campaigns of faults: what the library promises, tried on many seeded cases that look for the opposite.

A campaign is a module with a dataclass ``Case`` whose fields have simple defaults, a function ``draw`` that draws a case
from a generator, a function ``check`` that returns an outcome or raises :class:`Fault`, and ``CASES``, the number of
cases of each size. ``python -m benchmarks.faults`` runs them; a case is given by campaign, seed and number.
"""
