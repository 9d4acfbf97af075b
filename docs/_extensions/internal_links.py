"""Every link within the site leads somewhere: ``python docs/_extensions/internal_links.py docs/_build/html``."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The targets and the links of a page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()  # scripts, styles and pictures
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in ("img", "script", "link") and values.get("rel") != "canonical":
            self.loaded |= {values[name] for name in ("src", "href") if name in values}


def broken_links(site: Path) -> list[str]:
    """A line for each link to a page or heading that does not exist, and for each file loaded from elsewhere."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    lines = []
    for path, page in pages.items():
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                lines += [f"{path.relative_to(site.resolve())} loads {link}"] if link in page.loaded else []
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].ids if target in pages else None
            if not target.exists() or (known is not None and parts.fragment and unquote(parts.fragment) not in known):
                lines.append(f"{path.relative_to(site.resolve())} links to {link}")
    return lines


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found) or "Every link within the site leads somewhere, and nothing is loaded from elsewhere.")
    sys.exit(1 if found else 0)
