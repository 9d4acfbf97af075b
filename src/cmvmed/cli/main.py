"""The command line ``cmvmed``: finds the command, formats errors and sets the exit code.

The command NAME is ``command`` in the module ``cmvmed.cli.NAME_command``. The module is imported when the command is
called, so that help is fast. A ``ValueError``, ``OSError`` or ``ImportError`` is a user error and is shown in one line
without a traceback. Any other exception is a bug and is shown with its traceback.
"""

import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

import click

from cmvmed import __version__

# Short help of each command, in the order of the help text, by section.
SECTIONS = {
    "Your data": {
        "init": "Look at your data, guess views, labels and groups, and write the project file cmvmed.toml.",
        "check": "Count rows, labels and gaps of a project, and report what looks wrong.",
        "train": "Train a model; write it and its report; print the expected accuracy.",
        "predict": "Predict new rows: class, probabilities, prediction set, share of each view, novelty.",
        "suggest": "Choose the rows to label next, and say why.",
        "label": "Label rows in the browser while a model learns.",
        "report": "Write the report of a model again.",
        "export": "Write a model as ONNX, for devices without Python.",
    },
    "Without data of your own": {
        "demo": "Learn how many people are in a room from its sensors; then classify simulated footsteps.",
    },
}
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
EXIT_CODES = "Exit codes: 0 success, 1 failure, 2 invalid command line, 130 interrupted, 143 terminated."
USER_ERRORS = (ValueError, OSError, ImportError)
_ALLOW = "Allow writing there, or choose another folder."
ADVICE = {  # by the number of an error of the system
    errno.ENOSPC: "Free some space, or choose a file on another disk. Existing files were not changed.",
    errno.EACCES: _ALLOW,
    errno.EPERM: _ALLOW,
    errno.EROFS: _ALLOW,
    errno.ENOENT: "Check the spelling of the path.",
    errno.EMFILE: "Too many files are open at once: raise the limit (ulimit -n).",
}


class CommandGroup(click.Group):
    """A group of commands, in the order in which they were added: errors of the user in one line, exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help text."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown name suggests a similar one."""
        commands = self.list_commands(ctx)
        if args[0] not in commands and not args[0].startswith("-"):
            close = get_close_matches(args[0], commands, n=1)
            advice = f"Did you mean {close[0]!r}?" if close else f"Commands: {', '.join(commands)}."
            ctx.fail(f"No such command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command and show user errors in one line."""
        try:
            with _ended_by_sigterm():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            is_terminated = isinstance(error, Terminated)
            click.echo("Terminated." if is_terminated else "Interrupted.", err=True)
            from cmvmed.numerics.threads import WORKER  # not before: help is to be fast

            code = 143 if is_terminated else 130
            if any(thread.name == WORKER for thread in threading.enumerate()):
                sys.stdout.flush()
                os._exit(code)  # a computation that was given up still runs, and could crash while Python ends
            raise click.exceptions.Exit(code) from None
        except BrokenPipeError:  # the output was closed, as in `cmvmed check | head`
            raise
        except USER_ERRORS as error:
            if ctx.meta.get("debug"):
                raise
            raise click.ClickException(_message(error)) from error


def _message(error: Exception) -> str:
    """What to show of an error; what the system reports gets the file first, and advice."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error) or type(error).__name__
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror}. {ADVICE.get(error.errno, 'Check the file and its folder, and try again.')}"


class LazyCommands(CommandGroup):
    """The commands of ``cmvmed``, which are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and add the option ``--debug`` and the exit codes to it."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"cmvmed.cli.{cmd_name}_command").command
        return with_debug_option(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the short help of the commands without importing them."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: open files are removed and worker processes end."""


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Raise an exception at SIGTERM; signals can be handled in the main thread only."""

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value or ctx.meta.get("debug", False)


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
)


def with_debug_option(command: click.Command) -> click.Command:
    """Add the option ``--debug`` and the exit codes to the help of a command, unless it has them."""
    if not any(parameter.name == "debug" for parameter in command.params):
        debug_option(command)
    command.epilog = command.epilog or EXIT_CODES
    return command


@click.group(
    name="cmvmed",
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="cmvmed", message="%(prog)s %(version)s")
@debug_option
def main() -> None:
    """Semi-supervised classification with several sensors and few labels.

    \b
    First steps with your own files (without one, `cmvmed init --example` writes a table):
      cmvmed init DATA              write the project file cmvmed.toml: views, labels, groups
      cmvmed check                  what looks wrong in the data
      cmvmed train                  a model, a report, and the accuracy to expect
      cmvmed predict NEW_DATA       predictions; --explain adds reasons
      cmvmed COMMAND --help         description and examples of a command
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    gc.set_threshold(100_000)  # imports make many objects that stay: looking through them often took 0.2 s
