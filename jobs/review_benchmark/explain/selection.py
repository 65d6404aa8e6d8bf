"""What a person asked to have explained: reviews, and papers of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.review_benchmark.review import Review
from jobs.text import clip
from runner.errors import UsageError

SHOWN = 60
"""Characters of an unknown item that its error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One item."""

    review: Review
    paper: str = ""  #: id in the database, or `document_id` of an import; empty: none

    @property
    def name(self) -> str:
        """The item as a person names it."""
        return f"{self.review.id}:{self.paper}" if self.paper else self.review.id


def selections(
    items: Iterable[str], reviews: Sequence[Review]
) -> tuple[Selection, ...]:
    """What each item names: `CD1` a review, `CD1:17` a paper of it.

    Raises:
        UsageError: an item names no review; says which are near.
    """
    return tuple(_selection(item, reviews) for item in items)


def _selection(item: str, reviews: Sequence[Review]) -> Selection:
    for review in reviews:
        # ids may hold anything, colons too: a whole name goes before a part of one
        if item == review.id:
            return Selection(review=review)
    for review in reviews:
        begun = f"{review.id}:"
        if item.startswith(begun) and item != begun:
            return Selection(review=review, paper=item.removeprefix(begun))
    raise UsageError(_unknown(item, reviews))


def _unknown(item: str, reviews: Sequence[Review]) -> str:
    ids = [review.id for review in reviews]
    near = difflib.get_close_matches(item.partition(":")[0], ids)
    hint = "name a review by its id, or a paper as REVIEW:PAPER."
    if near:
        names = ", ".join(clip(name, SHOWN) for name in near)
        hint = f"the nearest {'are' if near[1:] else 'is'} {names}."
    return f"There is no review {clip(item, SHOWN)!r}; {hint}"
