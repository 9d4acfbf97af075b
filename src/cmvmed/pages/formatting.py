"""Numbers and their intervals, names and texts that users gave, as a page shows them.

Templates escape markup. What they leave are characters that are no text: control characters, halves of surrogate
pairs, and marks that reverse the direction of writing of all that follows; :func:`clean` replaces them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MINUS, DASH = "−", "–"
MAX_NAME = 48  # characters of a name that are shown
LEVEL = 0.9  # of all intervals
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
INVISIBLE = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")  # categories of Unicode that are replaced
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}"  # part of words
RIGHT_TO_LEFT = ("R", "AL")
FIRST_STRONG_ISOLATE, POP_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def plural(n: int, singular: str, plural_form: str | None = None) -> str:
    """A number with its noun, such as "1 split" or "20 splits"."""
    return f"{n:,} {singular if n == 1 else plural_form or singular + 's'}"


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence, such as "a, b and c"; separated by semicolons if a name contains a comma."""
    separator = "; " if any("," in name for name in names) else ", "
    return " and ".join(filter(None, [separator.join(names[:-1]), names[-1]])) if names else "none"


def format_percentage(value: float, digits: int = 1) -> str:
    """A share with its unit, such as "78.5 %"."""
    return f"{100.0 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def share_interval(n_right: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Jeffreys' interval of a share that was seen in n rows."""
    from scipy.stats import beta  # slow to import

    tail, right, wrong = 0.5 * (1.0 - level), n_right + 0.5, n - n_right + 0.5
    low, high = float(beta.ppf(tail, right, wrong)), float(beta.isf(tail, right, wrong))
    return (0.0 if n_right == 0 else low), (1.0 if n_right == n else high)


def clean(text: object) -> str:
    """The text with blanks for line breaks and U+FFFD for what is invisible; a text from right to left is isolated."""
    blanks = " ".join(str(text).split())
    kept = "".join(REPLACEMENT if _is_invisible(character) else character for character in blanks)
    if any(unicodedata.bidirectional(character) in RIGHT_TO_LEFT for character in kept):
        return f"{FIRST_STRONG_ISOLATE}{kept}{POP_ISOLATE}"
    return kept


def short(text: object, limit: int = MAX_NAME) -> str:
    """The same, with an ellipsis in the middle if it is long, so that names with different ends stay different."""
    blanks = " ".join(str(text).split())
    if len(blanks) > limit:
        blanks = f"{blanks[: limit - limit // 3 - 1]}…{blanks[-(limit // 3) :]}"
    return clean(blanks) or "(empty)"


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in INVISIBLE and character not in JOINERS
