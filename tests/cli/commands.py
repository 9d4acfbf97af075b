"""How tests run commands: in this process, where a process of its own is not the point."""

from click.testing import CliRunner

from cmvmed.cli.main import main


def run(*arguments):
    """The result of ``cmvmed ARGUMENTS``."""
    return CliRunner().invoke(main, list(map(str, arguments)))
