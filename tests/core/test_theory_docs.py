"""docs/theory.md states the identities that are tested and names what exists; the BibTeX entries agree."""

import re
from pathlib import Path

import pytest

import cmvmed

ROOT = Path(__file__).parents[2]
THEORY, CITE, CITATION = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("docs/theory.md", "docs/project/citation.md", "CITATION.cff")
)
TABLE, LETTERS = THEORY.split("## 12. Notation")[1].split("### Letters with several meanings")
IDENTITIES = (ROOT / "tests" / "core" / "test_identities.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(1, 21))
def test_identity_is_stated_and_tested(number):
    stated = re.findall(rf"^\| C{number} \| (.+) \|$", THEORY, flags=re.MULTILINE)
    assert len(stated) == 1
    assert len(stated[0]) > 20
    assert f"def test_c{number:02d}_" in IDENTITIES


def test_identities_that_are_cited_exist():
    cited = {int(number) for number in re.findall(r"\(C(\d+)", THEORY)}
    assert cited
    assert cited <= set(range(1, 21))


def test_equations_of_the_notation_are_in_the_theory():
    letters = set(re.findall(r"\(([A-H]′?)\)", TABLE))
    assert letters >= set("ABCDEFGH")
    assert all(f"\\tag{{{letter}}}" in THEORY for letter in letters)


def test_names_of_the_notation_exist():
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "cmvmed").rglob("*.py"))
    names = {name for cell in re.findall(r"`([\w.]+)`", TABLE) for name in cell.split(".") if name}
    assert len(names) > 40
    assert [name for name in sorted(names) if not re.search(rf"\b{re.escape(name)}\b", code)] == []


@pytest.mark.parametrize("letter", ["τ", "γ", "c", "ω", "r", "s", "F", "K", "a"])
def test_letters_with_several_meanings_are_listed(letter):
    first_cells = [
        line.split("|")[1].replace(",", " ").split() for line in LETTERS.splitlines() if line.startswith("| ")
    ]
    assert sum(letter in cells for cells in first_cells) == 1


def test_the_paper_is_cited_the_same_everywhere():
    (entry,) = re.findall(r"```bibtex\n(.*?)```", THEORY, flags=re.DOTALL)
    title = re.search(r"title\s+= \{(.+)\}", entry)[1]
    assert title in CITATION
    assert re.search(r"year\s+= \{(\d+)\}", entry)[1] in CITATION
    assert entry in CITE
    assert entry in (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")


def test_the_version_to_cite_is_that_of_the_package():
    assert f"\nversion: {cmvmed.__version__}\n" in CITATION
    assert f"version = {{{cmvmed.__version__}}}" in CITE


def test_the_paper_cites_what_its_bibliography_has():
    text, entries = ((ROOT / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    assert set(re.findall(r"@(\w+)", text.split("---")[2])) == set(
        re.findall(r"^@\w+\{(\w+),", entries, flags=re.MULTILINE)
    )


def test_the_paper_has_the_length_that_the_checklist_says():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split("---")[2].split("# References")[0]
    assert 750 <= len(re.findall(r"\b[\w'-]+\b", text)) <= 1000
