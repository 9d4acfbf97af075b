"""How good and how safe the default is on many data sets, beside its peers: ``python -m benchmarks.suite``."""
