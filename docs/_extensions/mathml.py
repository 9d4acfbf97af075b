"""Mathematics as MathML, written by docutils: pages show formulas without a network and without JavaScript."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

TAG = re.compile(r"\\tag\{([^}]*)\}")
logger = logging.getLogger(__name__)


def formula(text: str, node: nodes.Element, *, as_block: bool) -> str:
    """MathML of a formula in LaTeX; a formula that docutils cannot read is a warning and is shown as it is."""
    try:
        return str(tex2mathml(text, as_block=as_block))
    except (MathError, SyntaxError) as error:
        logger.warning("formula %r: %s", text, error, location=node, type="mathml")
        return f"<code>{nodes.unescape(text)}</code>"


def visit_math(writer: Any, node: nodes.math) -> None:
    """A formula within a sentence."""
    writer.body.append(formula(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.math_block) -> None:
    r"""Displayed formulas, one below the other, each with the letter of its ``\tag`` at the right."""
    for part in re.split(r"\n\s*\n", node.astext().strip()):
        number = TAG.search(part)
        writer.body.append(f'<div class="equation">{formula(TAG.sub("", part), node, as_block=True)}')
        writer.body.append(f'<span class="equation-number">({number[1]})</span></div>' if number else "</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; conf.py chooses it by ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
