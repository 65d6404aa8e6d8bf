"""What a person asked to have explained: records of a run, or reviews with all theirs.

`9800001:97000002` and `9800001/97000002` are a record, `9800001` is a review, and the
id of a paper alone means each record that it has.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from jobs.screening.gathering.records import Screened
from jobs.screening.validation_set import record_key
from jobs.text import clip
from runner.errors import UsageError

SHOWN = 60
"""Characters of an unknown item that its error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A record, or a review as a whole."""

    review: str
    record: int | None = None  #: its place among all; None: the whole review


def selections(items: Iterable[str], found: Screened) -> tuple[Selection, ...]:
    """What each item names, each once, in the order of the items.

    Raises:
        UsageError: an item names nothing; says which names are near.
    """
    every = chain.from_iterable(_named(item.strip(), found) for item in items)
    return tuple(dict.fromkeys(every))


def _named(item: str, found: Screened) -> list[Selection]:
    records = found.records
    slashes = (at for at, sign in enumerate(item) if sign == "/")
    split = (record_key(item[:at], item[at + 1 :]) for at in slashes)
    for key in (item, *split):
        if key in found.places:
            return [_record(found, found.places[key])]
    if item in records.reviews:
        return [Selection(review=item)]
    places = [at for at, paper in enumerate(records.papers) if paper == item]
    if not places:
        raise UsageError(_unknown(item, found))
    return [_record(found, at) for at in places]


def _record(found: Screened, at: int) -> Selection:
    records = found.records
    return Selection(review=records.reviews[records.review[at]], record=at)


def _unknown(item: str, found: Screened) -> str:
    near = [clip(name, SHOWN) for name in _near(item, found)]
    hint = "name a review by its id, or a record as review:paper."
    if near:
        hint = f"the nearest {'are' if near[1:] else 'is'} {', '.join(near)}."
    return f"There is no review and no record {clip(item, SHOWN)!r}; {hint}"


def _near(item: str, found: Screened) -> Iterator[str]:
    """Names like *item*: a paper of the review that it names, then of any kind."""
    records = found.records
    review, sign, paper = item.replace("/", ":", 1).partition(":")
    if not sign:
        ids = dict.fromkeys((*records.reviews, *records.papers))
        yield from difflib.get_close_matches(item, ids)
    elif review in records.reviews:
        own = np.flatnonzero(records.review == records.reviews.index(review))
        papers = [records.papers[at] for at in own.tolist()]
        for name in difflib.get_close_matches(paper, papers, cutoff=0.0):
            yield record_key(review, name)
    else:
        for name in difflib.get_close_matches(review, records.reviews, cutoff=0.0):
            key = record_key(name, paper)
            yield key if key in found.places else name
