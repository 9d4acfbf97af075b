"""The command line ``cmvmed``: finds the command, turns errors into one line, and sets the exit code.

The command NAME is ``command`` in the module ``cmvmed.cli.NAME_command``, which is imported when it is called, so that help comes at once. Its function does
the work and may raise: a ``ValueError``, ``OSError`` or ``ImportError`` is taken for something the user can mend and is shown
without a traceback. Anything else is a bug, and its traceback is wanted.
"""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from cmvmed import __version__

# What each command does, in the order of the help; see above for the module of each.
COMMANDS = {
    "demo": "Hear footsteps at four sensors, learn from 50 labels, see what it gains.",
    "datasets": "Show which data sets are there, which are missing, and where to put them.",
    "reproduce": "Repeat the paper's table and figure; killed or not, it goes on where it was.",
    "report": "Make one page of the results: tables, figures, tests, which claims hold.",
}
USER_ERRORS = (ValueError, OSError, ImportError)


class Commands(click.Group):
    """Commands that are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; each also takes ``--debug``, for those who add it at the end."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"cmvmed.cli.{cmd_name}_command").command
        if not any(parameter.name == "debug" for parameter in command.params):
            debug_option(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' one-line help without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none of that name, say which one may have been meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, n=1)
            advice = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn what the user can mend into one line."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has gone, as in `cmvmed datasets | head`
            raise
        except USER_ERRORS as error:
            if ctx.meta.get("debug"):
                raise
            raise click.ClickException(f"{error or type(error).__name__}") from error


def _remember_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value or ctx.meta.get("debug", False)


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_remember_debug, help="Show the traceback of an error."
)


@click.group(
    name="cmvmed",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the work failed, 2 the command line was wrong.",
)
@click.version_option(__version__, prog_name="cmvmed", message="%(prog)s %(version)s")
@debug_option
def main() -> None:
    """Several sensors, many unlabeled recordings, a handful of labels.

    \b
    Start here:
      cmvmed demo                   simulate, learn, compare, draw; a minute or so
      cmvmed datasets               which published data sets are on this machine
      cmvmed COMMAND --help         what a command does, with examples
    """  # noqa: D301 (\b keeps click from wrapping the lines)
