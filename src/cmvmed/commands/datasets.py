"""``cmvmed datasets``."""

import click


@click.command()
def command() -> None:
    """Show which data sets are there."""
    raise click.ClickException("not there yet")
