"""Configuration of the documentation: ``make docs`` writes docs/_build/html."""

import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]

import cmvmed  # noqa: E402

project = "cmvmed"
author = "The cmvmed developers"
project_copyright = author
version = release = cmvmed.__version__

extensions = [
    "commands",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "subscripts",
]
default_role = "literal"
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_templates", "**/sg_execution_times.rst", "sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [(".*", r"sklearn\..*"), ("term", "fit")]  # scikit-learn's pages are not read: offline

# Pages are Markdown that GitHub shows too: links between files, headings as targets, formulas in "math" fences.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autosummary_imported_members = True
numpydoc_show_class_members = False  # the template of a class lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "ignore_pattern": r"(__init__|(from|with)_\w+)\.py",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 10,
    "backreferences_dir": "reference/examples",
    "doc_module": ("cmvmed",),
}

html_theme = "pydata_sphinx_theme"
html_title = "cmvmed"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"**": ["contents.html"]}
html_theme_options = {
    "navbar_center": [],  # the contents are at the left of every page
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}


OUTSIDE = re.compile(r"\]\((?P<path>(\.\./)+(?!docs/)[\w./-]+\.(md|txt|py))\)")  # a link to a file that is not in docs/


def skip_members_of_sklearn(app, what, name, member, skip, options):
    """Leave out of the reference what scikit-learn documents, such as ``get_params``."""
    function = getattr(member, "__func__", getattr(member, "fget", None) or member)
    return True if str(getattr(function, "__module__", "")).startswith("sklearn.") else None


def offer_outside_files(app, name, source):
    """Let links of a page to files outside of docs/, such as results of benchmarks, offer these files."""
    folder = Path(app.env.doc2path(name)).parent

    def link(match):
        target = (folder / match["path"]).resolve()
        inside = target.is_relative_to(HERE) or not target.exists()
        return match[0] if inside else f"](<path:{match['path']}>)"

    source[0] = OUTSIDE.sub(link, source[0])


def setup(app):
    """Called by Sphinx."""
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-skip-member", skip_members_of_sklearn)
    app.connect("source-read", offer_outside_files)
