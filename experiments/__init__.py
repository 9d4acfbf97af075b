"""The paper's evaluation: experiments, published data, results and their report; run by ``python -m experiments``.

It is not part of the package that users install. Of ``cmvmed`` it uses what is public, and a few modules that
``tests/test_layers.py`` names.
"""
