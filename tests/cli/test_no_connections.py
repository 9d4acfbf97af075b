"""The commands open no connection, as SECURITY.md promises."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys

def watch(event, arguments):
    if event in ("socket.bind", "socket.connect", "socket.sendto", "socket.getaddrinfo", "urllib.Request"):
        print("CONNECTION", event, arguments[1:], file=sys.stderr)

sys.addaudithook(watch)
{}
"""
COMMAND = "from cmvmed.cli.main import main; sys.exit(main(sys.argv[1:]))"
COMMANDS = (["init", "--example"], ["check"], ["train"], ["predict", "room_new.csv"], ["report", "--force"])


def run(folder, program, arguments=()):
    command = [sys.executable, "-c", PROGRAM.format(program), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.slow
def test_the_commands_open_no_connection(tmp_path):
    for arguments in COMMANDS:
        done = run(tmp_path, COMMAND, arguments)
        assert done.returncode == 0, done.stderr
        assert "CONNECTION" not in done.stderr, arguments


def test_a_connection_is_noticed(tmp_path):
    done = run(tmp_path, "import socket; socket.create_server(('127.0.0.1', 0)).close()")
    assert "CONNECTION socket.bind" in done.stderr
