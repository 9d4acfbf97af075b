"""Kills by SIGKILL of every long command at random moments: a repeat gives the same results, and nothing is left.

After a kill no process of the command remains, files under their names are complete, and the command, given again, ends
with the results of an undisturbed run. For the labeling page, every label that was confirmed is on disk.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import HELD, SKIPPED, Fault, fresh_folder, workspace
from benchmarks.faults.killed_commands import COMMANDS, Command

CASES = {"ci": 5, "nightly": 100}
ORPHAN_SECONDS = 30.0
RUN_SECONDS = 600.0


@dataclass(frozen=True)
class Case:
    """A command, and when it is killed: a share of the time of an undisturbed run."""

    command: str = "train"
    moment: float = 0.5
    seed: int = 0


def draw(rng: np.random.Generator, number: int) -> Case:
    """Commands take turns."""
    return Case(list(COMMANDS)[number % len(COMMANDS)], float(rng.uniform(0.05, 1.0)), int(rng.integers(2**31)))


def check(case: Case) -> str:
    """Kill the command, look for what is left, and give it again."""
    if not Path("/proc/self/stat").exists():
        return SKIPPED
    command = COMMANDS[case.command]
    expected, seconds = reference(case.command)
    folder = fresh_folder()
    try:
        command.prepare(folder)
        process = start(command, folder)
        confirmed = command.use(process, folder, case.moment * seconds, case.seed)
        end_by_kill(process)
        check_no_orphans(process.pid)
        command.check_files(folder, confirmed)
        found = run_to_end(command, folder)
        if not same(found, expected):
            raise Fault(f"{case.command}: other results after a kill", f"{found!r:.200} instead of {expected!r:.200}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return HELD


def same(found: Any, expected: Any) -> bool:
    """Whether two results are equal, bit by bit."""
    if isinstance(expected, np.ndarray):
        return isinstance(found, np.ndarray) and np.array_equal(found, expected)
    return bool(found == expected)


def start(command: Command, folder: Path) -> "subprocess.Popen[str]":
    """Start a command in a session of its own, by which its processes are found."""
    paths = [str(Path(cmvmed.__file__).parents[1]), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    with (folder / "output.txt").open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-u", *command.arguments(folder)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def end_by_kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL to the process of the command alone, as the system does when memory is short."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


def run_to_end(command: Command, folder: Path) -> Any:
    """Run a command to its end; its results."""
    process = start(command, folder)
    try:
        found = command.finish(process, folder)
        code = process.wait(RUN_SECONDS)
    finally:
        end_by_kill(process)
    if code not in command.exit_codes:
        raise Fault("the command fails", f"exit code {code}: {(folder / 'output.txt').read_text()[-500:]}")
    check_no_orphans(process.pid)
    return command.results(folder) if found is None else found


@cache
def reference(name: str) -> tuple[Any, float]:
    """Results and time of an undisturbed run."""
    folder = workspace() / f"reference-{name.replace(' ', '-')}"
    folder.mkdir(exist_ok=True)
    COMMANDS[name].prepare(folder)
    begin = time.monotonic()
    found = run_to_end(COMMANDS[name], folder)
    return found, time.monotonic() - begin


def session_processes(session: int) -> list[int]:
    """Processes of a session that are alive, by /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def check_no_orphans(session: int, seconds: float = ORPHAN_SECONDS) -> None:
    """Raise a fault if processes of a session do not end by themselves; they are ended then."""
    end = time.monotonic() + seconds
    while (left := session_processes(session)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        commands = [_command_line(pid) for pid in left]
        for pid in left:
            _kill(pid)
        raise Fault("processes are left after a kill", "; ".join(commands))


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
    except OSError:
        return str(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
