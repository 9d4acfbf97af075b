"""Symbols such as m_i and K_UU in the text of mathematical pages are shown with their subscripts.

GitHub and editors show the same text as it is written. Names of Python are in code, which is left alone.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

PAGES = ("theory", "notation", "inspection")
LETTER = "(?:(?<![A-Za-z0-9_.])[A-Za-z]|[Α-Ωα-ω])[\u0302\u0303\u0304]?"
INDEX = r"\{[^}]*\}|[A-Z]{1,2}|[a-zα-ω0-9]{1,2}"
SYMBOL = re.compile(rf"(?P<letter>{LETTER})_(?P<index>{INDEX})(?![A-Za-z0-9_])")


def with_subscripts(text: str) -> Iterator[nodes.Node]:
    """The text, its symbols in italics with subscripts."""
    end = 0
    for match in SYMBOL.finditer(text):
        yield nodes.Text(text[end : match.start()])
        yield nodes.emphasis("", match["letter"])
        yield nodes.subscript("", match["index"].strip("{}"))
        end = match.end()
    yield nodes.Text(text[end:])


def show_subscripts(app: Sphinx, doctree: nodes.document) -> None:
    """Replace the symbols of a page."""
    if app.env.docname not in PAGES:
        return
    for node in list(doctree.findall(nodes.Text)):
        kept = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title, nodes.reference)
        if SYMBOL.search(node) and not isinstance(node.parent, kept):
            node.parent.replace(node, list(with_subscripts(str(node))))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("doctree-read", show_subscripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
