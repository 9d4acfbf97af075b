"""``cmvmed demo``."""

import click


@click.command()
def command() -> None:
    """Simulate footsteps at four sensors, learn from 50 labels, compare and draw."""
    raise click.ClickException("not there yet; run examples/demo.py")
