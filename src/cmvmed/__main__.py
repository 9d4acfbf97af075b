"""``python -m cmvmed``: the command line without its script."""

from cmvmed.cli.main import main

main()
