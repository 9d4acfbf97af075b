"""Text of a web page, without markup, scripts and HTTP headers.

``html.parser`` of the standard library is not used for two reasons: its treatment of invalid markup differs between
versions of Python, and so would the features; and its time is quadratic in the length of a page of unclosed tags. Here
each ``<`` takes at most MAX_TAG_LENGTH steps.
"""

import html
import re

# A block of "Name: value" lines before the page, as sent by a web server.
HTTP_HEADER = re.compile(
    r"\A(?:HTTP/[^\n]*\n|(?i:mime-version|content-type|date|server):[^\n]*\n)(?:[\w-]+:[^\n]*\n)*+\r?\n"
)
MAX_TAG_LENGTH = 1000
TAG = re.compile(r"""<[a-zA-Z/!?](?:[^>"']++|"[^"]*"|'[^']*')*+>""")
COMMENT_END = re.compile(r"--\s*+>")
SCRIPT = re.compile(r"<(script|style)\b", re.IGNORECASE)
SCRIPT_END = re.compile(r"</(?:script|style)\b", re.IGNORECASE)


def html_to_text(page: str) -> str:
    """Return the text of a page without tags, scripts and HTTP header, with character references resolved."""
    page = HTTP_HEADER.sub("", page)
    last_comment_end = max((match.start() for match in COMMENT_END.finditer(page)), default=-1)
    pieces = []
    position = 0
    while (start := page.find("<", position)) >= 0:
        pieces.append(page[position:start])
        position = _end_of_markup(page, start, last_comment_end)
    pieces.append(page[position:])
    return html.unescape(" ".join(pieces))


def _end_of_markup(page: str, start: int, last_comment_end: int) -> int:
    """Return the position after the comment, script or tag at `start`, or after the ``<`` if it is none of them."""
    if page.startswith("<!--", start) and start <= last_comment_end and (end := COMMENT_END.search(page, start)):
        return end.end()
    if SCRIPT.match(page, start):
        script_end = SCRIPT_END.search(page, start)
        return len(page) if script_end is None else script_end.start()
    if tag := TAG.match(page, start, start + MAX_TAG_LENGTH):
        return tag.end()
    # A quotation or comment without an end: the markup ends at the next bracket.
    return page.find(">", start, start + MAX_TAG_LENGTH) + 1 or start + 1
