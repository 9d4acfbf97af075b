"""``python -m cmvmed``: the command line without its script."""

from cmvmed.cli import main

main()
