"""What fits to the same rows have in common, whatever their labels: kernels, factorizations, landmarks, graphs.

Every fit asks a :class:`RowCache` for these results, so that there is one way to compute them. A cache that starts from
that of an earlier fit takes over what was computed of equal rows, bit by bit.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")


class RowCache:
    """Results that do not depend on labels, each computed when it is first asked for.

    Parameters
    ----------
    content : what the results depend on beside their keys, such as a checksum of the rows; None is unlike any other
    earlier : the cache of an earlier fit, whose results are taken over if its content is equal
    """

    def __init__(self, content: Hashable = None, earlier: "RowCache | None" = None) -> None:
        self.content = content
        same = earlier is not None and content is not None and earlier.content == content
        self._earlier: dict[Hashable, Any] = earlier._found if earlier is not None and same else {}
        self._found: dict[Hashable, Any] = {}

    def get(self, key: Hashable, compute: Callable[[], Result], *, once: bool = False) -> Result:
        """The result with this key: that of this fit or of the earlier one, or else computed.

        One that a fit asks for ``once`` is kept for later fits alone, if there may be any.
        """
        if once and self.content is None:
            return compute()
        if key not in self._found:
            self._found[key] = self._earlier[key] if key in self._earlier else compute()
        found: Result = self._found[key]
        return found

    def finish(self) -> "RowCache":
        """The cache itself, after it has dropped the results of the earlier fit that were not asked for again."""
        self._earlier = {}
        return self

    def clear(self) -> None:
        """Drop all results, of which no further use is expected."""
        self._earlier, self._found = {}, {}
