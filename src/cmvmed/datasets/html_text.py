"""The words of a web page: markup, scripts and mail headers taken away."""

import re
from html.parser import HTMLParser

# A block of "Name: value" lines before the page, as a web server sends it.
MIME_HEADER = re.compile(
    r"\A(?:HTTP/[^\n]*\n|(?i:mime-version|content-type|date|server)[^\n:]*:[^\n]*\n)(?:[\w-]+:[^\n]*\n)*\r?\n"
)


class _TextCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._inside_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside_code = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._inside_code = False

    def handle_data(self, data: str) -> None:
        if not self._inside_code:
            self.pieces.append(data)


def html_to_text(page: str) -> str:
    """Return the text of a page: no tags, no scripts, no server's header; character references resolved."""
    collector = _TextCollector()
    collector.feed(MIME_HEADER.sub("", page))
    collector.close()
    return " ".join(collector.pieces)
