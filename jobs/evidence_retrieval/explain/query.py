"""A query as a page begins with it: what was asked, and what people judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.evidence_retrieval.dataset import Criterion, Dataset, Post
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.text import (
    NONE,
    WIDTH,
    clip,
    cut,
    joined_words,
    one_line,
    plural,
    quoted_lines,
)

FOLD_WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """All that is known of a query before any model spoke."""

    place: int  #: among all queries
    key: str
    post_id: str
    criterion_id: str
    post: Post | None  #: None: an import without --sentences
    criterion: Criterion | None  #: None: an import without --criteria
    pool: int  #: UNKNOWN where nobody says
    fold: str | None
    y: int
    gold: tuple[str, ...] | None  #: uids; None: not known

    @classmethod
    def at(cls, dataset: Dataset, queries: Queries, place: int) -> Query:
        """The query at a place among all."""
        post_id = queries.posts[queries.post[place]]
        criterion_id = queries.criteria[queries.criterion[place]]
        fold = int(queries.fold[place])
        own = (each for each in dataset.criteria if each.id == criterion_id)
        try:
            post = dataset.post(post_id)
        except KeyError:
            post = None
        return cls(
            place=place,
            key=queries.key(place),
            post_id=post_id,
            criterion_id=criterion_id,
            post=post,
            criterion=next(own, None),
            pool=int(queries.pool[place]),
            fold=None if fold == UNKNOWN else queries.folds[fold],
            y=int(queries.y[place]),
            gold=None if queries.gold is None else tuple(queries.gold[place]),
        )

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each sentence by its uid, as prompts count them: from 1."""
        pool = () if self.post is None else self.post.sentences
        return {sentence.uid: n for n, sentence in enumerate(pool, start=1)}

    @property
    def standing(self) -> str:
        """The size of the pool, and the fold."""
        pool = "unknown" if self.pool == UNKNOWN else plural(self.pool, "sentence")
        fold = NONE if self.fold is None else clip(self.fold, FOLD_WIDTH)
        return f"{pool}, fold {fold}"

    @property
    def truth(self) -> str:
        """What people judged, in a few words."""
        if self.y == UNKNOWN:
            return "unjudged"
        if not self.y:
            return "judged, no evidence"
        if not self.gold:
            return "evidence, sentences unnamed"
        numbers = self.numbers
        named = [numbers.get(uid) or one_line(uid) for uid in self.gold]
        return f"evidence in {plural(len(named), 'sentence')}: {joined_words(named)}"


def head(query: Query, title: str) -> Iterator[str]:
    """The first lines of a page.

    Args:
        query: whose page.
        title: of which model, or that there is none yet.
    """
    yield cut(f"{one_line(query.key)}  {one_line(title)}", WIDTH)
    name = "" if query.criterion is None else query.criterion.name
    named = f"{one_line(query.criterion_id)}  {one_line(name)}"
    yield cut(f"criterion  {named}", WIDTH).rstrip()
    if query.criterion is not None:
        yield from quoted_lines(query.criterion.text)
    yield f"pool       {query.standing}"
    yield cut(f"gold       {query.truth}", WIDTH)
