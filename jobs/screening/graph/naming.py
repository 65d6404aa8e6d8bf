"""Reviews by the ids that people type."""

from __future__ import annotations

import difflib

from jobs.screening.corpus import Ids, place_in
from runner.errors import DatasetError


def place_of(review: str, reviews: Ids) -> int:
    """The place of a review among those that cite anything.

    Args:
        review: its id.
        reviews: ids, ascending.

    Raises:
        DatasetError: there is none of that id; names the nearest.
    """
    place = place_in(reviews, review)
    if place is not None:
        return place
    near = difflib.get_close_matches(review, reviews, cutoff=0.0)
    hint = f"the nearest are {', '.join(near)}" if near else "there are no reviews"
    raise DatasetError(f"No review {review!r} cites any paper; {hint}.")
