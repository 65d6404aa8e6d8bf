"""All that is told of one review: from what it includes to what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.screening.corpus import Corpus, Exclusion, Ids, Places
from jobs.screening.drawing.draw import Draw, Drawn, Dropped, wanted
from jobs.screening.drawing.lot import drawn, lot
from jobs.screening.drawing.pools import Pools, pools
from jobs.screening.graph.naming import place_of
from jobs.screening.graph.relations import Graph, Neighbourhood
from jobs.screening.prepared.statistics import ReviewStatistics, statistics_of
from jobs.screening.settings import Settings
from jobs.screening.validation_set import Kind
from runner.errors import DatasetError

SMALL = range(10, 21)
"""Included papers of the review that is explained where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A review that shares papers with the one explained."""

    review: str
    title: str
    included: int  #: its papers with an abstract
    shared: Ids  #: ascending
    brings: int  #: candidates among its papers


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A candidate."""

    paper: str
    title: str
    by: Ids  #: the related reviews that include it
    known: str  #: what the review is known to have made of it; "": nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """A paper in the order of its pool."""

    paper: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnKind:
    """What is drawn of one kind."""

    kind: Kind
    pool: int  #: papers that could be drawn
    wanted: int
    lots: tuple[Lot, ...]  #: those drawn, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The review and the first near miss of its draw, to be compared by their texts."""

    paper: str
    title: str
    abstract: str
    review_abstract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One review; every list ascends by id as text."""

    statistics: ReviewStatistics
    title: str
    seed: int
    included: tuple[tuple[str, str], ...]  #: id and title
    related: tuple[Related, ...]
    without_abstract: int  #: papers of related reviews that nothing can be read of
    candidates: tuple[Brought, ...]
    known_left_out: int  #: candidates that are left to be true exclusions, or pending
    drawn: tuple[DrawnKind, ...]  #: in set order
    dropped: str  #: why the review is not in the set; "": it is
    compared: NearMiss | None  #: None: no near miss is drawn

    @property
    def review(self) -> str:
        """Its id."""
        return self.statistics.review


def account_of(
    corpus: Corpus, graph: Graph, settings: Settings, review: str = ""
) -> Account:
    """What is to be told of a review.

    Args:
        corpus: texts and exclusions.
        graph: its citations.
        settings: of the draw.
        review: its id; "" for the first one of a size that is easy to follow.

    Raises:
        DatasetError: no such review cites anything, or none is of that size.
    """
    near = (
        graph.neighbourhood(place_of(review, graph.reviews))
        if review
        else _easy_to_follow(graph)
    )
    statistics = statistics_of(graph, near)
    alone = settings.model_copy(
        update={"review": (statistics.review,), "max_reviews": None}
    )
    known = corpus.excluded_by().get(statistics.review, {})
    outcome = Draw(corpus, graph, alone).of(near, known)
    pool = (
        outcome.pools
        if isinstance(outcome, Drawn)
        else pools(corpus, graph, near, known, alone)
    )
    kinds = _kinds(pool, settings, statistics.review)
    return Account(
        statistics=statistics,
        title=_review_title(corpus, statistics.review),
        seed=settings.seed,
        included=tuple(
            (paper, corpus.text(paper).title) for paper in graph.names(near.included)
        ),
        related=tuple(_related(corpus, graph, near)),
        without_abstract=_without_abstract(graph, near),
        candidates=_brought(corpus, graph, near, known),
        known_left_out=len(pool.candidates) - len(pool.near_miss),
        drawn=tuple(kinds),
        dropped=outcome.why if isinstance(outcome, Dropped) else "",
        compared=_first_near_miss(corpus, kinds, statistics.review),
    )


def _easy_to_follow(graph: Graph) -> Neighbourhood:
    for near in graph.neighbourhoods():
        if len(near.included) in SMALL and len(near.candidates):
            return near
    raise DatasetError(
        f"No review includes {SMALL[0]} to {SMALL[-1]} papers and has a candidate: "
        "name the one to explain."
    )


def _first_near_miss(
    corpus: Corpus, kinds: Sequence[DrawnKind], review: str
) -> NearMiss | None:
    drawn = [kind.lots[0] for kind in kinds if kind.kind == "near-miss" and kind.lots]
    if not drawn:
        return None
    text, own = corpus.text(drawn[0].paper), corpus.reviews.get(review)
    return NearMiss(
        paper=drawn[0].paper,
        title=text.title,
        abstract=text.abstract,
        review_abstract=own.abstract if own else "",
    )


def _review_title(corpus: Corpus, review: str) -> str:
    text = corpus.reviews.get(review)
    return text.title if text else ""


def _related(corpus: Corpus, graph: Graph, near: Neighbourhood) -> list[Related]:
    found = []
    for place in near.related.tolist():
        own = graph.included_by(place)
        found.append(
            Related(
                review=graph.reviews[place],
                title=_review_title(corpus, graph.reviews[place]),
                included=len(own),
                shared=tuple(graph.names(np.intersect1d(own, near.included))),
                brings=len(np.intersect1d(own, near.candidates)),
            )
        )
    return found


def _without_abstract(graph: Graph, near: Neighbourhood) -> int:
    cited = [graph.cited_by(place) for place in near.related.tolist()]
    papers: Places = np.unique(np.concatenate(cited)) if cited else near.related
    return int((~graph.has_abstract[papers]).sum()) if len(papers) else 0


def _brought(
    corpus: Corpus,
    graph: Graph,
    near: Neighbourhood,
    known: Mapping[str, Exclusion],
) -> tuple[Brought, ...]:
    by: dict[int, list[str]] = {place: [] for place in near.candidates.tolist()}
    for place in near.related.tolist():
        for paper in graph.included_by(place).tolist():
            if paper in by:
                by[paper].append(graph.reviews[place])
    return tuple(
        Brought(
            paper=graph.papers[paper],
            title=corpus.text(graph.papers[paper]).title,
            by=tuple(reviews),
            known=known[graph.papers[paper]].status
            if graph.papers[paper] in known
            else "",
        )
        for paper, reviews in by.items()
    )


def _kinds(pool: Pools, settings: Settings, review: str) -> list[DrawnKind]:
    found = []
    for kind, n in wanted(pool, settings).items():
        own = pool.of(kind)
        papers = drawn(own, n, seed=settings.seed, review=review, kind=kind)
        lots = tuple(
            Lot(paper=paper, sha256=lot(settings.seed, review, kind, paper))
            for paper in papers
        )
        found.append(DrawnKind(kind=kind, pool=len(own), wanted=n, lots=lots))
    return found
