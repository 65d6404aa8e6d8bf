"""A post with all its queries, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.evidence_retrieval.explain.decisions import outcome
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.explain.sentences import k_of
from jobs.evidence_retrieval.queries import Predictions
from jobs.text import (
    NONE,
    WIDTH,
    TextColumn,
    clip,
    cut,
    joined_words,
    number,
    one_line,
    text_table,
)

CRITERION_WIDTH = 16


def overview_lines(
    queries: Sequence[Query], predictions: Predictions | None
) -> Iterator[str]:
    """The queries of one post under the headline; None before any run."""
    first = queries[0]
    title = "before any run"
    if predictions is not None:
        title = f"{one_line(predictions.model)}, {one_line(predictions.config)}"
    yield cut(f"{one_line(first.post_id)}  {title}", WIDTH)
    yield f"pool       {first.standing}"
    columns = [
        TextColumn(
            title="criterion",
            cells=[clip(each.criterion_id, CRITERION_WIDTH) for each in queries],
            has_words=True,
        )
    ]
    if predictions is not None:
        columns += _columns(queries, predictions)
    truths = [each.truth for each in queries]
    columns.append(TextColumn(title="gold", cells=truths, has_words=True))
    yield from text_table(columns)


def _columns(
    queries: Sequence[Query], predictions: Predictions
) -> Iterator[TextColumn]:
    places = [query.place for query in queries]
    p = predictions.prob if predictions.prob is not None else predictions.score
    title = "p" if predictions.prob is not None else "score"
    values = [None if p is None else float(p[place]) for place in places]
    yield TextColumn(title=title, cells=[number(value) for value in values])
    states = [outcome(predictions, place) for place in places]
    yield TextColumn(title="state", cells=states, has_words=True)
    ks = (k_of(predictions, place) for place in places)
    yield TextColumn(title="K", cells=[NONE if k is None else str(k) for k in ks])
    cells = [_found(query, predictions) for query in queries]
    yield TextColumn(title="gold at", cells=cells)


def _found(query: Query, predictions: Predictions) -> str:
    """The places of the gold in the list that a reader sees the beginning of."""
    lists = predictions.lists.get(predictions.final)
    gold = frozenset(query.gold or ())
    listed = () if lists is None else lists[query.place]
    return joined_words(rank for rank, uid in enumerate(listed, start=1) if uid in gold)
