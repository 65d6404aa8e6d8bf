"""Traces how a review gets its negatives: related reviews, candidates, draw.

The trace is also drawn as boxes, never wider than a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.kit.text_format import plural
from jobs.screening.citations import Indices
from jobs.screening.corpus import Corpus
from jobs.screening.data import (
    NO_TEXT,
    Exclusion,
    Ids,
    RecordKind,
    review_index,
)
from jobs.screening.graph import Graph, Neighbourhood, ReviewStatistics, statistics_of
from jobs.screening.sampling import (
    CandidatePools,
    DrawnReview,
    DroppedReview,
    NegativeSampler,
    candidate_pools,
    first_by_hash,
    sampling_hash,
    wanted_counts,
)
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from store.document import WIDTH
from store.printable import cut, one_line, padded

SMALL = range(10, 21)
"""Number of included papers of the review explained by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedReview:
    """A review that shares papers with the explained one."""

    review: str
    title: str
    included: int  #: its papers with an abstract
    shared: Ids  #: ascending
    brings: int  #: candidates among its papers


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMissCandidate:
    """A near-miss candidate."""

    paper: str
    title: str
    by: Ids  #: the related reviews that include it
    known: str  #: the review's known decision on the paper; "": none


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedPaper:
    """A paper in the order of its pool."""

    paper: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnKind:
    """Papers drawn of one kind."""

    kind: RecordKind
    pool: int  #: papers that could be drawn
    wanted: int
    lots: tuple[HashedPaper, ...]  #: those drawn, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstNearMiss:
    """The review and the first near miss of its draw, with both texts."""

    paper: str
    title: str
    abstract: str
    review_abstract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativesTrace:
    """The trace of one review; every list ascends by id as text."""

    statistics: ReviewStatistics
    title: str
    seed: int
    included: tuple[tuple[str, str], ...]  #: id and title
    related: tuple[RelatedReview, ...]
    without_abstract: int  #: papers of related reviews that have no text
    candidates: tuple[NearMissCandidate, ...]
    known_left_out: int  #: candidates that are reserved as true exclusions, or pending
    drawn_kinds: tuple[DrawnKind, ...]  #: in set order
    dropped: str  #: reason why the review is not in the set; "": it is
    compared: FirstNearMiss | None  #: None: no near miss is drawn

    @property
    def review(self) -> str:
        """Id of the review."""
        return self.statistics.review


def trace_negatives(
    corpus: Corpus, graph: Graph, settings: ScreeningSettings, review: str = ""
) -> NegativesTrace:
    """Trace how a review gets its negatives.

    Args:
        corpus: texts and exclusions.
        graph: its citations.
        settings: settings of the draw.
        review: its id; "" for the first one of a size that is easy to follow.

    Raises:
        DatasetError: no such review cites any paper, or no review has that size.
    """
    near = (
        graph.neighbourhood(review_index(review, graph.reviews))
        if review
        else _easy_to_follow(graph)
    )
    statistics = statistics_of(graph, near)
    alone = settings.model_copy(
        update={"review": (statistics.review,), "max_reviews": None}
    )
    exclusions = corpus.excluded_by().get(statistics.review, {})
    outcome = NegativeSampler(corpus, graph, alone).of(near, exclusions)
    pool = (
        outcome.pools
        if isinstance(outcome, DrawnReview)
        else candidate_pools(corpus, graph, near, exclusions, alone)
    )
    kinds = _kinds(pool, settings, statistics.review)
    return NegativesTrace(
        statistics=statistics,
        title=_review_title(corpus, statistics.review),
        seed=settings.seed,
        included=tuple(
            (paper, corpus.text(paper).title) for paper in graph.names(near.included)
        ),
        related=tuple(_related_reviews(corpus, graph, near)),
        without_abstract=_without_abstract(graph, near),
        candidates=_near_miss_candidates(corpus, graph, near, exclusions),
        known_left_out=len(pool.candidates) - len(pool.near_miss),
        drawn_kinds=tuple(kinds),
        dropped=outcome.reason if isinstance(outcome, DroppedReview) else "",
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
) -> FirstNearMiss | None:
    near_misses = [
        kind.lots[0] for kind in kinds if kind.kind == "near-miss" and kind.lots
    ]
    if not near_misses:
        return None
    text, review_text = (
        corpus.text(near_misses[0].paper),
        corpus.reviews.get(review, NO_TEXT),
    )
    return FirstNearMiss(
        paper=near_misses[0].paper,
        title=text.title,
        abstract=text.abstract,
        review_abstract=review_text.abstract,
    )


def _review_title(corpus: Corpus, review: str) -> str:
    return corpus.reviews.get(review, NO_TEXT).title


def _related_reviews(
    corpus: Corpus, graph: Graph, near: Neighbourhood
) -> list[RelatedReview]:
    related = []
    for index in near.related.tolist():
        included = graph.included_by(index)
        related.append(
            RelatedReview(
                review=graph.reviews[index],
                title=_review_title(corpus, graph.reviews[index]),
                included=len(included),
                shared=tuple(graph.names(np.intersect1d(included, near.included))),
                brings=len(np.intersect1d(included, near.candidates)),
            )
        )
    return related


def _without_abstract(graph: Graph, near: Neighbourhood) -> int:
    cited = [graph.cited_by(index) for index in near.related.tolist()]
    papers: Indices = np.unique(np.concatenate(cited)) if cited else near.related
    return int((~graph.has_abstract[papers]).sum()) if len(papers) else 0


def _near_miss_candidates(
    corpus: Corpus,
    graph: Graph,
    near: Neighbourhood,
    exclusions: Mapping[str, Exclusion],
) -> tuple[NearMissCandidate, ...]:
    by: dict[int, list[str]] = {index: [] for index in near.candidates.tolist()}
    for index in near.related.tolist():
        for paper in graph.included_by(index).tolist():
            if paper in by:
                by[paper].append(graph.reviews[index])
    return tuple(
        NearMissCandidate(
            paper=graph.papers[paper],
            title=corpus.text(graph.papers[paper]).title,
            by=tuple(reviews),
            known=exclusions[graph.papers[paper]].status
            if graph.papers[paper] in exclusions
            else "",
        )
        for paper, reviews in by.items()
    )


def _kinds(
    pool: CandidatePools, settings: ScreeningSettings, review: str
) -> list[DrawnKind]:
    kinds = []
    for kind, n in wanted_counts(pool, settings).items():
        candidates = pool.of(kind)
        papers = first_by_hash(
            candidates, n, seed=settings.seed, review=review, kind=kind
        )
        lots = tuple(
            HashedPaper(
                paper=paper, sha256=sampling_hash(settings.seed, review, kind, paper)
            )
            for paper in papers
        )
        kinds.append(DrawnKind(kind=kind, pool=len(candidates), wanted=n, lots=lots))
    return kinds


BOXES = 4
"""Maximum number of related reviews drawn: those that share most, then by id."""
SHARED = 3
"""Maximum number of shared papers listed in a box."""

_INDENT = " "
_GAP = "  "
_WIDE = WIDTH - 2 * len(_INDENT)
UNTITLED = "(no title)"


def diagram(account: NegativesTrace) -> Iterator[str]:
    """Yield the lines of the diagram."""
    near = sorted(
        account.related,
        key=lambda related_review: (-len(related_review.shared), related_review.review),
    )
    boxed = sorted(near[:BOXES], key=lambda related_review: related_review.review)
    included = plural(account.statistics.n_included, "included paper")
    yield from _box_row(
        [[account.review, account.title or UNTITLED, included]], marks="┬" * len(boxed)
    )
    if not boxed:
        yield f"{_INDENT}no related review: nothing is collected"
        return
    yield _lines(len(boxed), "│")
    yield from _box_row(
        [_related_boxes(related_review) for related_review in boxed],
        top="┴",
        bottom="┬",
    )
    if near[BOXES:]:
        yield f"{_INDENT}and {plural(len(near[BOXES:]), 'further related review')}"
    yield _lines(len(boxed), "▼")
    papers = " ".join(candidate.paper for candidate in account.candidates)
    candidates = plural(len(account.candidates), "candidate")
    collected = account.statistics.n_related_papers
    left = (
        f"{collected:,} collected, without the {collected - len(account.candidates):,} "
        "that the review includes"
    )
    yield from _box_row([[candidates, papers or "none", left]])


def _related_boxes(related_review: RelatedReview) -> list[str]:
    shared = [f"* {paper}" for paper in related_review.shared[:SHARED]]
    if len(related_review.shared) > SHARED:
        shared.append(f"* {len(related_review.shared) - SHARED:,} more")
    title = related_review.title or UNTITLED
    brings = f"brings {related_review.brings:,}"
    return [
        related_review.review,
        title,
        f"includes {related_review.included:,}",
        *shared,
        brings,
    ]


def _box_row(
    boxes: Sequence[Sequence[str]], *, top: str = "", bottom: str = "", marks: str = ""
) -> Iterator[str]:
    """Yield the lines of a row of boxes of equal height.

    Args:
        boxes: the lines of each box; external text is escaped here.
        top: sign in the middle of every upper edge.
        bottom: sign in the middle of every lower edge.
        marks: signs in the lower edge of a single box, above the boxes of the next row.
    """
    width = _width(len(boxes))
    height = max(map(len, boxes))
    yield _INDENT + _GAP.join(_edge("┌", "┐", top, width) for _ in boxes)
    for row in range(height):
        cells = (box[row] if row < len(box) else "" for box in boxes)
        yield _INDENT + _GAP.join(
            f"│ {padded(cut(one_line(cell), width - 4), width - 4)} │" for cell in cells
        )
    if marks:
        signs = list("└" + "─" * (width - 2) + "┘")
        for column, mark in zip(_middles(len(marks)), marks, strict=True):
            signs[column] = mark
        yield _INDENT + "".join(signs)
    else:
        yield _INDENT + _GAP.join(_edge("└", "┘", bottom, width) for _ in boxes)


def _edge(left: str, right: str, sign: str, width: int) -> str:
    middle = width // 2
    line = "─" * (middle - 1) + (sign or "─")
    return left + line + "─" * (width - 1 - len(line) - 1) + right


def _lines(n: int, sign: str) -> str:
    """Return a line with a sign under, or over, the middle of each of *n* boxes."""
    columns = _middles(n)
    row = [" "] * _WIDE
    for column in columns:
        row[column] = sign
    return (_INDENT + "".join(row)).rstrip()


def _middles(n: int) -> list[int]:
    width = _width(n)
    return [number * (width + len(_GAP)) + width // 2 for number in range(n)]


def _width(n: int) -> int:
    return (_WIDE - len(_GAP) * (n - 1)) // n
