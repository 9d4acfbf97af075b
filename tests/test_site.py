"""What builds the site: formulas can be rendered, symbols get subscripts, and broken links are found."""

import html
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parent.parent / "docs"
FORMULAS = re.findall(r"```math\n(.*?)```", (DOCS / "theory.md").read_text(encoding="utf-8"), flags=re.DOTALL)
MATHML = "{http://www.w3.org/1998/Math/MathML}"


@pytest.fixture
def extension(monkeypatch):
    """Import a module of docs/_extensions."""
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    yield lambda name: __import__(name)
    for name in ("internal_links", "mathml", "subscripts"):
        sys.modules.pop(name, None)


def site(folder, **pages):
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def test_a_broken_link_is_found(tmp_path, extension):
    links = extension("internal_links")
    good = site(
        tmp_path, index='<a href="other.html#here">x</a>', other='<h1 id="here">x</h1><a href="https://a.b">y</a>'
    )
    assert links.broken_links(good) == []
    assert links.broken_links(site(tmp_path, other="<h1>no target</h1>")) == ["index.html links to other.html#here"]
    assert links.broken_links(site(tmp_path, index='<img src="gone.png">')) == ["index.html links to gone.png"]


def test_what_is_loaded_from_elsewhere_is_found(tmp_path, extension):
    page = '<script src="https://cdn.example/math.js"></script>'
    found = extension("internal_links").broken_links(site(tmp_path, index=page))
    assert found == ["index.html loads https://cdn.example/math.js"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_of_the_theory_can_be_rendered(formula, extension):
    pytest.importorskip("sphinx")
    mathml = extension("mathml")
    text = mathml.tex2mathml(mathml.TAG.sub("", formula), as_block=True)
    tree = ElementTree.fromstring(html.unescape(text))  # XML does not know all entities of HTML
    lines = tree.findall(f"{MATHML}mtable/{MATHML}mtr")
    assert len(lines) == (formula.count("\\\\") + 1 if "aligned" in formula else 0), "a bracket spans several lines"
    assert "12" not in [number.text for number in tree.iter(f"{MATHML}mn")], "\\tfrac12 is read as one number"


def test_symbols_are_recognized_and_names_are_not(extension):
    pytest.importorskip("sphinx")
    symbol = extension("subscripts").SYMBOL
    text = "f_i(x) = w_iᵀΦ_i(x), Φ_iΦ_iᵀ, K_UU, σ_i², m̄_L, but not dual_coef, x_train or a.b_c"
    found = [(match["letter"], match["index"]) for match in symbol.finditer(text)]
    assert found == [("f", "i"), ("w", "i"), ("Φ", "i"), ("Φ", "i"), ("Φ", "i"), ("K", "UU"), ("σ", "i"), ("m̄", "L")]
