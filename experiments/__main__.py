"""``python -m experiments``: the paper's experiments, from the folder of the repository."""

from experiments.commands import main

if __name__ == "__main__":  # worker processes import this module
    main(prog_name="python -m experiments")
