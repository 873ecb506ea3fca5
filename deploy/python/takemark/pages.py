"""Reads the entries of a list."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import TakemarkError


def entries(read: Callable[[str | None], Any], name: str) -> Iterator[Any]:
    """Yields the entries of all pages. The next page is read after the previous one is consumed."""
    cursor: str | None = None
    while True:
        page: Mapping[str, Any] = read(cursor)
        found = page.get(name)
        if not isinstance(found, list):
            raise TakemarkError("bad_response", f"the response has no list of {name}")
        yield from found
        following = page.get("nextCursor")
        if following is None:
            return
        # A cursor that leads to its own page would never end.
        if following == cursor or not isinstance(following, str):
            raise TakemarkError("bad_response", "the response has an invalid cursor of the next page")
        cursor = following
