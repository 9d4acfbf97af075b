"""The guides of docs/guides do what they say: their Python blocks and commands run in order, in a folder of their own."""

import re
import shlex
from pathlib import Path

import pytest

from cmvmed._optional import install_command
from cmvmed.cli.main import main
from tests.estimators.test_docs import NOT_RUN

GUIDES = sorted(
    path for path in (Path(__file__).parent.parent / "docs" / "guides").glob("*.md") if path.stem != "index"
)
BLOCK = re.compile(r"^(?P<before>[^\n]*)\n```(?P<kind>python|bash)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
README = GUIDES[0].parents[2] / "README.md"
NEEDS = {"recordings_folder": ["soundfile", "librosa"], "many_rows": ["pyarrow"]}


def blocks(text):
    """(kind, number of the first line, code) of the blocks that are to be run."""
    return [
        (match["kind"], text[: match.start("code")].count("\n"), match["code"])
        for match in BLOCK.finditer(text)
        if match["before"].strip() != NOT_RUN
    ]


def run_commands(code):
    """Run the lines of a block with ``cmvmed``; a line with pip is for a new machine, any other is a mistake."""
    for line in code.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program in ("cmvmed", "pip"), line
        if program == "cmvmed":
            main(arguments, standalone_mode=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:aeon is not installed")
@pytest.mark.parametrize("page", GUIDES, ids=[page.stem for page in GUIDES])
def test_a_guide_runs(page, tmp_path, monkeypatch):
    for package in ["pandas", *NEEDS.get(page.stem, [])]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    found = blocks(page.read_text(encoding="utf-8"))
    for kind, first_line, code in found:
        if kind == "python":
            exec(compile("\n" * first_line + code, str(page), "exec"), names)
        else:
            run_commands(code)
    assert len(found) >= 3


def test_the_lines_of_the_readme_run_as_printed(tmp_path, monkeypatch, capsys):
    """In one folder and in order: the commands, then the lines of Python; what must not be run is compared."""
    pytest.importorskip("pandas")
    (make, commands), (python,) = (
        [code for kind, _, code in blocks(README.read_text(encoding="utf-8")) if kind == wanted]
        for wanted in ("bash", "python")
    )
    monkeypatch.chdir(README.parent)
    install = commands.splitlines()[0]
    assert shlex.split(install, comments=True)[1:] == shlex.split(install_command("workbench,label"))[-3:]
    targets = re.findall(r"^(\w+):", Path("Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {line.split()[1] for line in make.splitlines()} <= set(targets)
    monkeypatch.chdir(tmp_path)
    run_commands(commands)
    assert {path.name for path in tmp_path.iterdir()} >= {"room.csv", "report.html", "predictions.csv"}
    capsys.readouterr()
    exec(python, {"__name__": "__page__"})
    assert "Expected accuracy" in capsys.readouterr().out


def test_a_wrong_command_of_a_guide_is_noticed():
    """Broken twin: an unknown option, and a program that is not ours."""
    with pytest.raises(Exception, match="No such option"):
        run_commands("cmvmed check --colour")
    with pytest.raises(AssertionError, match="rm"):
        run_commands("rm nothing")


def test_every_guide_is_in_the_index():
    index, start = (folder.joinpath("index.md").read_text(encoding="utf-8") for folder in GUIDES[0].parents[:2])
    assert all(f"]({page.name})" in index and f"\nguides/{page.stem}\n" in start for page in GUIDES)
    assert len(GUIDES) == 6
