"""Builds a set: one pass over the reviews; what is long is handed on as it comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TypeAlias

from jobs.screening.corpus import Corpus
from jobs.screening.difficulty.contamination import Contamination, contamination
from jobs.screening.difficulty.drift import vectors_of
from jobs.screening.difficulty.topic import Drift, Topic
from jobs.screening.drawing.draw import Draw, Drawn, Dropped, is_analysed
from jobs.screening.graph.relations import Graph, Neighbourhood
from jobs.screening.prepared.statistics import ReviewStatistics, statistics_of
from jobs.screening.settings import Settings
from jobs.screening.validation_set import Kind, Record

CandidateRow: TypeAlias = tuple[str, str, int, int, int]
"""A near miss as `candidates.csv` has it: review, paper, links, shared, drawn (1)."""


@dataclass(slots=True, kw_only=True)
class Built:
    """What the pass leaves behind; rows have gone to whoever took them."""

    statistics: list[ReviewStatistics] = field(default_factory=list)
    analysed: list[ReviewStatistics] = field(default_factory=list)  #: those of them
    drift: list[Drift] = field(default_factory=list)
    contamination: dict[str, Contamination] = field(default_factory=dict)
    kinds: Counter[Kind] = field(default_factory=Counter)  #: records by kind
    papers: set[str] = field(default_factory=set)  #: of any record
    reviews: list[str] = field(default_factory=list)  #: in the set
    pools: Counter[str] = field(default_factory=Counter)  #: papers by kind
    dropped: Counter[str] = field(default_factory=Counter)  #: reviews by reason
    short: dict[str, Mapping[Kind, int]] = field(default_factory=dict)
    drawn: dict[str, Mapping[Kind, int]] = field(default_factory=dict)
    """Papers drawn of the kinds that are short; with `short` it is what was asked."""


def build(
    corpus: Corpus,
    graph: Graph,
    settings: Settings,
    *,
    candidates: Callable[[Iterable[CandidateRow]], None],
    records: Callable[[Iterable[Record]], None],
) -> Built:
    """Build the set.

    Args:
        corpus: all inputs.
        graph: of its citations.
        settings: of the draw.
        candidates: takes those of one review after another.
        records: takes what was drawn, likewise: a hundred thousand reviews have
            millions of both.
    """
    built = Built()
    draw = Draw(corpus, graph, settings)
    vectors = vectors_of(corpus, graph) if settings.drift else None
    excluded = corpus.excluded_by()
    has_random = "random" in settings.negatives
    study = {each.paper: each.study for each in corpus.exclusions if each.study}
    for near in graph.neighbourhoods():
        figures = statistics_of(graph, near)
        known = excluded.get(figures.review, {})
        built.statistics.append(figures)
        if excluded:
            built.contamination[figures.review] = contamination(
                corpus,
                graph.names(near.candidates),
                graph.names(near.included),
                known,
                study,
            )
        topic = None
        if is_analysed(near, settings):
            built.analysed.append(figures)
            if vectors is not None:
                topic = Topic(vectors, corpus, near, known, has_random=has_random)
                built.drift.append(topic.drift(figures.review))
        outcome = draw.of(near, known)
        _book(built, outcome)
        if isinstance(outcome, Drawn):
            records(
                replace(each, similarity=topic.of(each.paper)) if topic else each
                for each in outcome.records
            )
        candidates(_candidates(graph, near, outcome))
    return built


def _book(built: Built, outcome: Drawn | Dropped | None) -> None:
    match outcome:
        case Drawn():
            built.reviews.append(outcome.review)
            built.papers.update(each.paper for each in outcome.records)
            kinds = Counter(each.kind for each in outcome.records)
            built.kinds += kinds
            for kind in kinds:
                built.pools[kind] += len(outcome.pools.of(kind))
            if outcome.short:
                built.short[outcome.review] = outcome.short
                built.drawn[outcome.review] = {
                    kind: kinds[kind] for kind in outcome.short
                }
        case Dropped():
            built.dropped[outcome.why] += 1
        case None:
            pass


def _candidates(
    graph: Graph, near: Neighbourhood, outcome: Drawn | Dropped | None
) -> Iterator[CandidateRow]:
    drawn: set[str] = set()
    if isinstance(outcome, Drawn):
        drawn = {each.paper for each in outcome.records if each.kind == "near-miss"}
    papers = graph.names(near.candidates)
    # columns, not objects: there may be tens of millions
    return zip(
        repeat(graph.reviews[near.review]),
        papers,
        near.n_links.tolist(),
        near.n_shared.tolist(),
        (int(paper in drawn) for paper in papers),
        strict=False,
    )
