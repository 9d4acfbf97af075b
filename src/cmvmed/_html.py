"""Small pieces of HTML for notebooks: every text is escaped, and colors are those of the page, light or dark."""

from collections.abc import Iterable, Sequence
from html import escape

LINE = "1px solid color-mix(in srgb, currentColor 25%, transparent)"
MARKS = {"yes": "✓", "partial": "~", "open": "?", "no": "✗", "error": "✗", "warning": "!", "note": "i"}
SIDES = {"l": "left", "r": "right"}


def html_box(*parts: str) -> str:
    """Parts below each other."""
    return f'<div style="font:14px/1.5 system-ui,sans-serif;max-width:60em">{"".join(parts)}</div>'


def html_sentence(text: object, *, mark: str = "", bold: bool = False) -> str:
    """A paragraph, after the symbol of a kind of verdict or finding."""
    symbol = f'<span aria-hidden="true">{MARKS[mark]}</span> ' if mark else ""
    shown = f"<strong>{escape(str(text))}</strong>" if bold else escape(str(text))
    return f'<p style="margin:.3em 0">{symbol}{shown}</p>'


def html_table(head: Sequence[str], sides: str, rows: Iterable[Sequence[object]], *, title: str = "") -> str:
    """A table; ``sides`` has an l or r per column. With a title it is folded below it."""

    def line(tag: str, cells: Sequence[object]) -> str:
        style = f"padding:.15em .8em .15em 0;border-bottom:{LINE};background:none"
        shown = (
            f'<{tag} style="text-align:{SIDES[side]};{style}">{escape(str(cell))}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f'<tr style="background:none">{"".join(shown)}</tr>'

    body = "".join(line("td", row) for row in rows)
    table = (
        '<table style="border-collapse:collapse;margin:.4em 0;color:inherit;font-variant-numeric:tabular-nums">'
        f"<thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"
    )
    return f"<details><summary>{escape(title)}</summary>{table}</details>" if title else table


def html_interval(low: float, mean: float, high: float, *, other: float | None = None) -> str:
    """A share between 0 and 1 with its interval on a scale, and another one as a thin line."""
    thin = "" if other is None else _mark(other, 1, "currentColor")
    label = f"{mean:.1%}, between {low:.1%} and {high:.1%}"
    band = (
        f'<div style="position:absolute;top:3px;bottom:3px;left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%;'
        'background:#3b82c4;opacity:.55;border-radius:3px"></div>'
    )
    return (
        f'<div role="img" aria-label="{label}" title="{label}" style="position:relative;height:18px;max-width:24em;'
        f'border:{LINE};border-radius:4px;margin:.3em 0">{band}{_mark(mean, 3, "#3b82c4")}{thin}</div>'
    )


def _mark(share: float, width: int, color: str) -> str:
    return (
        f'<div style="position:absolute;top:0;bottom:0;left:calc({100 * share:.2f}% - {width / 2:g}px);width:{width}px;'
        f'background:{color}"></div>'
    )
