"""The command line ``python -m experiments``: help, choices and exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.commands import main
from experiments.experiment import EXPERIMENTS, PROTOCOLS
from experiments.methods import METHODS
from experiments.tasks import TASKS
from tests.cli.test_main import imported

ROOT = Path(__file__).parents[2]
COMMANDS = [*EXPERIMENTS, "all", "report", "datasets"]


def run(*arguments):
    return CliRunner().invoke(main, arguments, prog_name="python -m experiments")


def test_help_lists_the_commands_in_order_with_examples():
    assert list(main.commands) == COMMANDS
    shown = run("--help").output
    places = [shown.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "python -m experiments table1" in shown.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    shown = run(name, "--help").output
    assert f"python -m experiments {name}" in shown.partition("Examples:")[2]
    assert "--debug" in shown
    assert "130 interrupted" in " ".join(shown.split())


def test_help_shows_the_lazy_choices_and_imports_no_slow_library():
    assert f"[{'|'.join(PROTOCOLS)}]" in run("table1", "--help").output
    code = "from experiments.commands import main\nmain(['table1', '--help'], standalone_mode=False)"
    assert imported(code, folder=ROOT) == set()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all", "--datasets", "iris"], map(repr, TASKS)),
        (["all", "--methods", "magic"], map(repr, METHODS)),
        (["all", "--protocol", "x"], map(repr, PROTOCOLS)),
        (["table3"], ["No such command 'table3'. Did you mean 'table1'?"]),
        (["zzz"], [f"No such command 'zzz'. Commands: {', '.join(COMMANDS)}."]),
        (["datasets", "--data-dir", "nowhere"], ["Directory 'nowhere' does not exist"]),
    ],
    ids=["datasets", "methods", "protocol", "similar command", "other command", "folder"],
)
def test_an_invalid_command_line_exits_with_2_and_says_what_is_valid(arguments, words):
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert all(word in shown.output for word in words)


def test_the_module_runs():
    command = [sys.executable, "-m", "experiments", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Usage: python -m experiments [OPTIONS] COMMAND")
