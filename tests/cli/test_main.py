"""The command line: help, errors, exit codes."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

import cmvmed
from cmvmed.cli import main as cli


def run(*arguments):
    return CliRunner().invoke(cli.main, arguments)


@pytest.fixture
def failing(monkeypatch):
    """Replace the command ``check`` by one that raises the given error."""

    def use(error):
        @click.command()
        def command():
            raise error

        monkeypatch.setattr("cmvmed.cli.check_command.command", command)

    return use


def test_help_names_every_command_and_the_exit_codes():
    shown = run("--help")
    assert shown.exit_code == 0
    assert all(f"\n  {name} " in shown.output for name in cli.COMMANDS)
    assert "0 success, 1 failure, 2 invalid command line, 130 interrupted" in shown.output


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_help_of_every_command_has_examples(name):
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert f"cmvmed {name}" in shown.output.partition("Examples:")[2]
    assert "--debug" in shown.output


SLOW = {"numpy", "scipy", "sklearn", "pandas", "joblib", "matplotlib", "sqlite3"}


def imported(code, folder=None):
    """Slow libraries that a new interpreter has imported after running the code."""
    program = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return SLOW & set(done.stderr.split())


def test_command_line_imports_no_slow_library():
    assert imported("import cmvmed.cli.main") == set()
    assert {"numpy", "scipy", "sklearn"} <= imported("import cmvmed.cli.main, cmvmed.estimators")


@pytest.mark.parametrize("arguments", [[], *([name] for name in cli.COMMANDS)], ids=["cmvmed", *cli.COMMANDS])
def test_help_imports_no_slow_library(arguments):
    command = [*arguments, "--help"]
    assert imported(f"from cmvmed.cli.main import main\nmain({command}, standalone_mode=False)") == set()


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_help_of_every_command_has_the_exit_codes(name):
    assert re.search(r"Exit codes: 0 .*1 .*2 invalid command line,\s+130 interrupted", run(name, "--help").output, re.S)


def test_without_arguments_the_commands_for_users_come_first():
    shown = run().output
    assert "Usage:" in shown
    own, simulated = shown.index("Your data:"), shown.index("Without data of your own:")
    assert own < shown.index("\n  export ") < simulated < shown.index("\n  demo ")
    names = ["init", "check", "train", "predict", "suggest", "label", "report", "export"]
    assert list(cli.SECTIONS["Your data"]) == names


def test_version_is_that_of_the_package():
    assert run("--version").output == f"cmvmed {cmvmed.__version__}\n"


def test_module_runs_like_the_script():
    shown = subprocess.run([sys.executable, "-m", "cmvmed", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().endswith(cmvmed.__version__)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'?"),
        (["zzz"], "No such command 'zzz'. Commands: init, check, train, predict, suggest, label, report"),
        (["--fast"], "No such option"),
        (["demo", "--splits", "0"], "0 is not in the range x>=1"),
    ],
)
def test_invalid_command_line_exits_with_2(arguments, words):
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert words in shown.output


@pytest.mark.parametrize(
    "error", [ValueError("no such view"), FileNotFoundError("no such view"), ImportError("no such view")]
)
def test_user_error_is_one_line(failing, error):
    failing(error)
    shown = run("check")
    assert (shown.exit_code, shown.output) == (1, "Error: no such view\n")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "Error: out.csv: No space left on device. Free some space"),
        (errno.EACCES, "Error: out.csv: Permission denied. Allow writing there"),
        (errno.EIO, "Error: out.csv: Input/output error. Check the file"),
    ],
)
def test_errors_of_the_system_name_the_file_and_what_to_do(failing, number, words):
    failing(OSError(number, os.strerror(number), "out.csv"))
    shown = run("check")
    assert shown.exit_code == 1
    assert shown.output.startswith(words)
    assert "Errno" not in shown.output


@pytest.mark.parametrize("arguments", [["--debug", "check"], ["check", "--debug"]])
def test_debug_shows_the_traceback(failing, arguments):
    failing(ValueError("no such view"))
    shown = run(*arguments)
    assert isinstance(shown.exception, ValueError)


def test_an_interrupted_command_exits_with_130(failing):
    failing(KeyboardInterrupt())
    shown = run("check")
    assert (shown.exit_code, shown.output) == (130, "Interrupted.\n")


def test_bug_is_not_shown_as_user_error(failing):
    failing(TypeError("bug"))
    assert isinstance(run("check").exception, TypeError)


def test_closed_output_is_no_error(failing):
    failing(BrokenPipeError(32, "Broken pipe"))
    assert "Error" not in run("check").output


def test_public_names_are_imported_on_access():
    assert {getattr(cmvmed, name).__name__ for name in cmvmed.__all__} == set(cmvmed.__all__)
    assert set(cmvmed.__all__) <= set(dir(cmvmed))
    assert cmvmed.estimators is import_module("cmvmed.estimators")
    with pytest.raises(AttributeError, match="module 'cmvmed' has no attribute 'nothing'"):
        cmvmed.nothing  # noqa: B018
