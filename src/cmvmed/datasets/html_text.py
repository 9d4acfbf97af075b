"""The words of a web page: markup, scripts and mail headers taken away.

The standard library's ``html.parser`` is not used for two reasons: its reading of broken markup changed between releases of
Python, and with it the features; and a page of unclosed tags takes it time quadratic in its length. Here each ``<`` costs at
most MAX_TAG steps.
"""

import html
import re

# A block of "Name: value" lines before the page, as a web server sends it.
MIME_HEADER = re.compile(
    r"\A(?:HTTP/[^\n]*\n|(?i:mime-version|content-type|date|server):[^\n]*\n)(?:[\w-]+:[^\n]*\n)*+\r?\n"
)
MAX_TAG = 1000
TAG = re.compile(r"""<[a-zA-Z/!?](?:[^>"']++|"[^"]*"|'[^']*')*+>""")
COMMENT_END = re.compile(r"--\s*+>")
CODE = re.compile(r"<(script|style)\b", re.IGNORECASE)
CODE_END = re.compile(r"</(?:script|style)\b", re.IGNORECASE)


def html_to_text(page: str) -> str:
    """Return the text of a page: no tags, no scripts, no server's header; character references resolved."""
    page = MIME_HEADER.sub("", page)
    last_comment_end = max((match.start() for match in COMMENT_END.finditer(page)), default=-1)
    pieces = []
    at = 0
    while (start := page.find("<", at)) >= 0:
        pieces.append(page[at:start])
        at = _end_of_markup(page, start, last_comment_end)
    pieces.append(page[at:])
    return html.unescape(" ".join(pieces))


def _end_of_markup(page: str, start: int, last_comment_end: int) -> int:
    """Return the position behind the comment, script or tag at `start`, or behind the ``<`` if it is none of them."""
    if page.startswith("<!--", start) and start <= last_comment_end and (end := COMMENT_END.search(page, start)):
        return end.end()
    if CODE.match(page, start):
        code_end = CODE_END.search(page, start)
        return len(page) if code_end is None else code_end.start()
    if tag := TAG.match(page, start, start + MAX_TAG):
        return tag.end()
    # A quote or comment that is never closed: the markup ends at the next bracket all the same.
    return page.find(">", start, start + MAX_TAG) + 1 or start + 1
