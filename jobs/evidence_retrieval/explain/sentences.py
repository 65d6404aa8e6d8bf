"""The sentences of a query with their gold, and their score and place at each stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jobs.evidence_retrieval.dataset import Dataset, Post
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.merging import Assessed, merged_order
from jobs.evidence_retrieval.predicting.outputs import Outputs
from jobs.evidence_retrieval.predicting.pool import Pool
from jobs.evidence_retrieval.predicting.steps import GRAPH, Steps, path
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions
from jobs.text import (
    NONE,
    WIDTH,
    TextColumn,
    clip,
    cut,
    hanging_lines,
    number,
    one_line,
    plural,
    text_table,
)

NAME_WIDTH = 10
UID_WIDTH = 24
ORDINALS = ("1st", "2nd", "3rd")
"""Titles of the places that the steps of a configuration give."""

Place = TypeVar("Place", int, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Whatever gave the sentences of one query a score or a place."""

    columns: tuple[TextColumn, ...] = ()
    notes: tuple[str, ...] = ()  #: what a reader must know of them


def before_any_run(dataset: Dataset, query: Query) -> Stages:
    """The lexical scores, which need no model."""
    if query.post is None:
        return Stages()
    pool = Pool(dataset, query.post, None)
    return Stages(columns=(_lexical(pool, query),))


def of_model(
    dataset: Dataset,
    query: Query,
    outputs: Outputs,
    config: Config,
    predictions: Predictions,
) -> Stages:
    """What stored answers say of the sentences, then the steps of *config*."""
    if query.post is None:
        return Stages()
    model = predictions.model
    pool = Pool(dataset, query.post, outputs.cosines.get(query.post_id))
    steps = Steps(pool, outputs, outputs.subjects[model], dataset.settings.seed)
    column = pool.keys.index(query.key)
    # whether a stage said anything does not hang on the constants of a fold
    known = [bool(steps.at(chain).known[column]) for chain in path(config)]
    return Stages(
        columns=(
            _lexical(pool, query),
            *_answered(pool, steps, outputs, model, column),
            *_steps(predictions, query),
        ),
        notes=(*_stated(steps.assessed[column]), *_notes(known, config)),
    )


def given(predictions: Predictions, place: int, uids: Sequence[str]) -> Stages:
    """The place of each sentence in each list that was made elsewhere."""
    columns = []
    for name, lists in predictions.lists.items():
        ranks = _ranks(lists[place])
        cells = [str(ranks.get(uid, NONE)) for uid in uids]
        columns.append(TextColumn(title=clip(name, NAME_WIDTH), cells=cells))
    return Stages(columns=tuple(columns))


def pool_of(query: Query, listed: Iterable[Sequence[str]] = ()) -> tuple[str, ...]:
    """The uids of a pool in document order; where it is unknown, of all lists.

    Gold that no list has stands at the end.
    """
    own = () if query.post is None else query.post.sentences
    named = (*(s.uid for s in own), *(uid for uids in listed for uid in uids))
    return tuple(dict.fromkeys((*named, *(query.gold or ()))))


def sentence_lines(
    query: Query, uids: Sequence[str], stages: Stages, shown: Sequence[str] | None
) -> Iterator[str]:
    """The table of sentences, each with its text below.

    Args:
        query: whose pool.
        uids: the rows.
        stages: the columns between gold and what is shown.
        shown: uids that a reader of the headline sees, best first; None before a run.
    """
    if not uids:
        yield "  none are named" if query.pool == UNKNOWN or query.pool else "  none"
        return
    gold = frozenset(query.gold or ())
    marks = ["gold" if uid in gold else "" for uid in uids]
    columns = [TextColumn(title="gold", cells=marks), *stages.columns]
    if shown is not None:
        seen = frozenset(shown)
        cells = ["yes" if uid in seen else "" for uid in uids]
        columns.append(TextColumn(title="shown", cells=cells))
    if query.post is None:
        cells = [one_line(uid) for uid in uids]
        yield from text_table(
            [*columns, TextColumn(title="uid", cells=cells, has_words=True)]
        )
    else:
        yield from _with_texts(query.post, uids, columns)
    for note in stages.notes:
        yield from hanging_lines("  ", note)


def k_of(predictions: Predictions, place: int) -> int | None:
    """How many sentences a reader sees; None where nobody says."""
    shown = shown_of(predictions, place)
    if shown is not None:
        return len(shown)
    k = UNKNOWN if predictions.k is None else int(predictions.k[place])
    return None if k == UNKNOWN else k


def shown_of(predictions: Predictions, place: int) -> tuple[str, ...] | None:
    """What a reader sees: the first K of the last list; None where none is known."""
    k = UNKNOWN if predictions.k is None else int(predictions.k[place])
    if k == UNKNOWN or not predictions.final:
        return None
    return tuple(predictions.lists[predictions.final][place][:k])


def _with_texts(
    post: Post, uids: Sequence[str], columns: Sequence[TextColumn]
) -> Iterator[str]:
    """A table in which each row has its number before it and its text below."""
    own = {sentence.uid: (n, sentence) for n, sentence in enumerate(post.sentences, 1)}
    numbers = [str(own[uid][0]) if uid in own else NONE for uid in uids]
    title, *rows = text_table([TextColumn(title="n", cells=numbers), *columns])
    yield title
    for uid, row in zip(uids, rows, strict=True):
        yield row
        text = one_line(own[uid][1].text) if uid in own else "(not in the data)"
        yield cut(f"      {clip(uid, UID_WIDTH)} | {text}", WIDTH)


def _lexical(pool: Pool, query: Query) -> TextColumn:
    scores = pool.lexical[:, pool.keys.index(query.key)].tolist()
    return TextColumn(title="bm25", cells=[number(score, 3) for score in scores])


def _answered(
    pool: Pool, steps: Steps, outputs: Outputs, model: str, column: int
) -> Iterator[TextColumn]:
    """A column for each stage whose answer could be read."""
    key = pool.keys[column]
    assessed = steps.assessed[column]
    if assessed is not None:
        cells = [number(100 * own, 0) for own in assessed.relevance.tolist()]
        yield TextColumn(title="assess", cells=cells)
    orders = outputs.subjects[model].orders.get(key)
    if orders:
        merged = merged_order([orders[replicate] for replicate in sorted(orders)])
        yield TextColumn(title="llm", cells=_places(merged))
    if pool.cosines is not None:
        cells = [number(own, 3) for own in pool.cosines.query[:, column].tolist()]
        yield TextColumn(title="cosine", cells=cells)
    if key in outputs.endpoint:
        cells = [number(score, 3) for score in outputs.endpoint[key]]
        yield TextColumn(title="endpoint", cells=cells)


def _steps(predictions: Predictions, query: Query) -> Iterator[TextColumn]:
    """Where each step put the sentences; the graph's own scores before its places."""
    uids = query.numbers
    for title, (name, lists) in zip(ORDINALS, predictions.lists.items(), strict=False):
        listed = lists[query.place]
        if name == GRAPH:
            along = predictions.scores[name][query.place].tolist()
            scores = dict(zip(listed, along, strict=True))
            yield TextColumn(title="graph", cells=[number(scores[uid]) for uid in uids])
        ranks = _ranks(listed)
        yield TextColumn(title=title, cells=[str(ranks[uid]) for uid in uids])


def _places(order: Sequence[int]) -> list[str]:
    """The place of each sentence in an order, from 1."""
    ranks = _ranks(order)
    return [str(ranks[n]) for n in range(len(order))]


def _ranks(order: Sequence[Place]) -> dict[Place, int]:
    return {own: rank for rank, own in enumerate(order, start=1)}


def _stated(assessed: Assessed | None) -> Iterator[str]:
    if assessed is not None:
        replies = plural(assessed.replicates, "reply", "replies")
        yield f"assess: probability {number(assessed.probability)}, from {replies}"


def _notes(known: Sequence[bool], config: Config) -> Iterator[str]:
    stages = ("+".join(config.first_stage), config.rerank, config.graph)
    named = [name for name in stages if name != "none"]
    told = [f"{o} {name}" for o, name in zip(ORDINALS, named, strict=False)]
    yield f"places under {one_line(config.name)}: {', '.join(told)}"
    # a graph spreads what it is given, and says nothing of its own
    for title, is_known, name in zip(ORDINALS, known, named, strict=False):
        if not is_known and name != config.graph:
            yield f"{title}: nothing of {name} could be used, so another order stands"
