"""What a person asked to have explained: posts with all their queries, or queries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.queries import Queries
from jobs.text import clip
from runner.errors import UsageError

SHOWN = 60
"""Characters of an unknown item that its error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One item."""

    queries: tuple[Query, ...]
    is_post: bool  #: a whole post was named, so its queries are told in short


def selections(
    items: Iterable[str], dataset: Dataset, queries: Queries
) -> tuple[Selection, ...]:
    """What each item names among *queries*, those of the data or of an import.

    Raises:
        UsageError: an item names nothing; says which names are near.
    """
    by_key = {queries.key(place): place for place in range(len(queries))}
    by_post: dict[str, list[int]] = {post: [] for post in queries.posts}
    for place, post in enumerate(queries.post.tolist()):
        by_post[queries.posts[post]].append(place)
    found = []
    for item in items:
        # as in the key of a task, a name that fits both ways is a query
        places = [by_key[item]] if item in by_key else by_post.get(item)
        if places is None:
            raise UsageError(_unknown(item, queries))
        own = tuple(Query.at(dataset, queries, place) for place in places)
        found.append(Selection(queries=own, is_post=item not in by_key))
    return tuple(found)


def _unknown(item: str, queries: Queries) -> str:
    near = [clip(name, SHOWN) for name in _near(item, queries)]
    hint = "name a post by its id, or a query as post/criterion."
    if near:
        hint = f"the nearest {'are' if near[1:] else 'is'} {', '.join(near)}."
    return f"There is no post and no query {clip(item, SHOWN)!r}; {hint}"


def _near(item: str, queries: Queries) -> Iterator[str]:
    """Names like *item*: first a criterion of the post that it names, then posts."""
    post, slash, criterion = item.rpartition("/")
    if slash and post in queries.posts:
        near = difflib.get_close_matches(criterion, queries.criteria, cutoff=0)
        yield from (f"{post}/{name}" for name in near)
        return
    named = post if slash else item
    for name in difflib.get_close_matches(named, queries.posts):
        yield f"{name}/{criterion}" if criterion in queries.criteria else name
