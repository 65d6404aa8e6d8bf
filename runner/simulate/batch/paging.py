"""Parts of lists, as both providers deal them out: behind or before a known id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.simulate.batch.exchange import Asking, Refusal, encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list, as both providers deal it out."""

    ids: Sequence[str]
    has_more: bool

    def body(self, data: Sequence[object], **more: object) -> bytes:
        """The page that holds *data*, one value for each of its ids."""
        return encoded(
            {
                **more,
                "data": data,
                "first_id": self.ids[0] if self.ids else None,
                "last_id": self.ids[-1] if self.ids else None,
                "has_more": self.has_more,
            }
        )


def page(
    ids: Sequence[str],
    asking: Asking,
    *,
    after: str,
    most: int,
    usual: int = 20,
    before: str = "",
) -> Page:
    """The page of *ids* that *asking* names.

    Args:
        ids: All there are, the first one first.
        asking: Its query says how many, and behind or before which id.
        after: The name of the parameter for the id behind which the page begins.
        most: The longest page there is.
        usual: How long it is where nobody says.
        before: The parameter for the id before which it ends, if there is one.

    Raises:
        Refusal: The parameters are none.
    """
    query = asking.query
    try:
        limit = int(query.get("limit", usual))
    except ValueError:
        limit = 0
    if not 1 <= limit <= most:
        raise Refusal(f"limit: a whole number from 1 to {most}", param="limit")
    try:
        if before in query:
            rest = ids[: ids.index(query[before])]
            return Page(ids=rest[-limit:], has_more=len(rest) > limit)
        rest = ids[ids.index(query[after]) + 1 :] if after in query else ids
    except ValueError:
        raise Refusal("There is no object with the id of the cursor.") from None
    return Page(ids=rest[:limit], has_more=len(rest) > limit)
