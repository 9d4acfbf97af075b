"""HTML as a tree, parsed by the standard library; unbalanced tags are an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def walk(self):
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag, **attributes):
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            node
            for node in self.walk()
            if node.tag == tag and all(node.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag, **attributes):
        (node,) = self.all(tag, **attributes)
        return node

    @property
    def text(self):
        return " ".join(self.raw_text.split())

    @property
    def raw_text(self):
        return "".join(child if isinstance(child, str) else child.raw_text for child in self.children)


class _Builder(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(text):
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.open == [builder.root], f"<{builder.open[-1].tag}> is not closed"
    return builder.root


def table_rows_of(table):
    """Texts of the cells of each body row by the text of the first cell."""
    lines = [[cell.text for cell in row.children if isinstance(cell, Node)] for row in table.one("tbody").all("tr")]
    return {line[0]: line[1:] for line in lines}
