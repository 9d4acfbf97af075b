"""The algorithms of CMVMED, for tests that hold for each of them."""

from cmvmed import CMVMED

ALGORITHMS = ("bohning", "jaakkola", "exact", "newton", "printed")


def with_algorithm(name, **settings):
    """A CMVMED with this algorithm; "printed" comes with the paper's settings, except those given and the kernel."""
    if name == "printed":
        return CMVMED.paper(algorithm=name, **{"kernel": "linear+rbf", **settings})
    return CMVMED(algorithm=name, **settings)
