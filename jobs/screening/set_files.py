"""Builds a validation set in one pass over the reviews and writes its files.

Long tables are written row by row while the set is built. The files hold neither a time
nor a path, so equal inputs give equal bytes.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

from jobs.screening.contamination import Contamination, contamination
from jobs.screening.data import (
    KINDS,
    ArticleText,
    Corpus,
    Criteria,
    RecordKind,
    ScreeningRecord,
)
from jobs.screening.graph import Graph, Neighbourhood, ReviewStatistics, statistics_of
from jobs.screening.sampling import (
    DrawnReview,
    DroppedReview,
    NegativeSampler,
    is_analysed,
)
from jobs.screening.settings import ScreeningSettings
from jobs.screening.topic_drift import ReviewDrift, TopicDrift, tfidf_vectors
from runner.table_files import harmless

CandidateRow: TypeAlias = tuple[str, str, int, int, int]
"""A near miss as `candidates.csv` has it: review, paper, links, shared, drawn (1)."""


@dataclass(slots=True, kw_only=True)
class BuiltSet:
    """What the pass leaves behind; rows have gone to whoever took them."""

    statistics: list[ReviewStatistics] = field(default_factory=list)
    analysed: list[ReviewStatistics] = field(default_factory=list)  #: those of them
    drift: list[ReviewDrift] = field(default_factory=list)
    contamination: dict[str, Contamination] = field(default_factory=dict)
    kinds: Counter[RecordKind] = field(default_factory=Counter)  #: records by kind
    papers: set[str] = field(default_factory=set)  #: of any record
    reviews: list[str] = field(default_factory=list)  #: in the set
    pools: Counter[str] = field(default_factory=Counter)  #: papers by kind
    dropped: Counter[str] = field(default_factory=Counter)  #: reviews by reason
    short: dict[str, Mapping[RecordKind, int]] = field(default_factory=dict)
    drawn_counts: dict[str, Mapping[RecordKind, int]] = field(default_factory=dict)
    """Papers drawn of the kinds that are short; with `short` it is what was asked."""


def build(
    corpus: Corpus,
    graph: Graph,
    settings: ScreeningSettings,
    *,
    candidates: Callable[[Iterable[CandidateRow]], None],
    records: Callable[[Iterable[ScreeningRecord]], None],
) -> BuiltSet:
    """Build the set.

    Args:
        corpus: all inputs.
        graph: of its citations.
        settings: of the draw.
        candidates: takes those of one review after another.
        records: takes what was drawn, likewise: a hundred thousand reviews have
            millions of both.
    """
    built = BuiltSet()
    draw = NegativeSampler(corpus, graph, settings)
    vectors = tfidf_vectors(corpus, graph) if settings.drift else None
    excluded = corpus.excluded_by()
    has_random = "random" in settings.negatives
    study = {
        exclusion.paper: exclusion.study
        for exclusion in corpus.exclusions
        if exclusion.study
    }
    for near in graph.neighbourhoods():
        figures = statistics_of(graph, near)
        exclusions = excluded.get(figures.review, {})
        built.statistics.append(figures)
        if excluded:
            built.contamination[figures.review] = contamination(
                corpus,
                graph.names(near.candidates),
                graph.names(near.included),
                exclusions,
                study,
            )
        topic = None
        if is_analysed(near, settings):
            built.analysed.append(figures)
            if vectors is not None:
                topic = TopicDrift(
                    vectors, corpus, near, exclusions, has_random=has_random
                )
                built.drift.append(topic.drift(figures.review))
        outcome = draw.of(near, exclusions)
        _count_outcome(built, outcome)
        if isinstance(outcome, DrawnReview):
            records(
                replace(record, similarity=topic.of(record.paper)) if topic else record
                for record in outcome.records
            )
        candidates(_candidates(graph, near, outcome))
    return built


def _count_outcome(
    built: BuiltSet, outcome: DrawnReview | DroppedReview | None
) -> None:
    match outcome:
        case DrawnReview():
            built.reviews.append(outcome.review)
            built.papers.update(record.paper for record in outcome.records)
            kinds = Counter(record.kind for record in outcome.records)
            built.kinds += kinds
            for kind in kinds:
                built.pools[kind] += len(outcome.pools.of(kind))
            if outcome.short:
                built.short[outcome.review] = outcome.short
                built.drawn_counts[outcome.review] = {
                    kind: kinds[kind] for kind in outcome.short
                }
        case DroppedReview():
            built.dropped[outcome.reason] += 1
        case None:
            pass


def _candidates(
    graph: Graph, near: Neighbourhood, outcome: DrawnReview | DroppedReview | None
) -> Iterator[CandidateRow]:
    drawn_papers: set[str] = set()
    if isinstance(outcome, DrawnReview):
        drawn_papers = {
            record.paper for record in outcome.records if record.kind == "near-miss"
        }
    papers = graph.names(near.candidates)
    # columns, not objects: there may be tens of millions
    return zip(
        repeat(graph.reviews[near.review]),
        papers,
        near.n_links.tolist(),
        near.n_shared.tolist(),
        (int(paper in drawn_papers) for paper in papers),
        strict=False,
    )


Cell: TypeAlias = str | int | float | None


class CsvTable:
    """A CSV file that grows row by row; cells are data, as they are."""

    def __init__(self, lines: Any, columns: Sequence[str]) -> None:  # noqa: ANN401
        self._writer = csv.writer(lines, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Further rows; None becomes an empty cell."""
        self._writer.writerows(rows)


@contextmanager
def csv_table(path: Path, columns: Sequence[str]) -> Iterator[CsvTable]:
    """A table that is written inside."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        yield CsvTable(lines, columns)


def record_row(record: ScreeningRecord) -> Sequence[Cell]:
    """A record as a row of `validation_set.csv`."""
    return (
        record.review,
        record.paper,
        record.label,
        record.kind,
        int(record.also_near_miss),
        harmless(record.reason),
        record.reason_code,
        record.n_links,
        record.n_shared,
        record.similarity,
    )


def statistics_row(statistics: ReviewStatistics) -> Sequence[Cell]:
    """A review as a row of `near_miss_stats.csv`."""
    return tuple(asdict(statistics).values())


def drift_rows(drift: ReviewDrift) -> Iterator[Sequence[Cell]]:
    """The kinds of a review as rows of `topic_drift.csv`."""
    for kind in KINDS:
        similarity = drift.kinds.get(kind)
        if similarity is not None:
            yield (
                drift.review,
                kind,
                similarity.n,
                similarity.mean,
                *similarity.quartiles,
                similarity.separability,
                drift.jaccard,
            )


def contamination_row(review: str, counts: Contamination) -> Sequence[Cell]:
    """A review as a row of `contamination.csv`."""
    return (
        review,
        counts.n,
        counts.confirmed,
        counts.pending,
        counts.duplicate_suspect,
        counts.unverified,
        counts.share_confirmed,
        counts.lower,
        counts.upper,
    )


def review_json(
    review: str, text: ArticleText, criteria: Criteria | None
) -> dict[str, Any]:
    """A review as a line of `reviews.jsonl`; without criteria where it has none."""
    fields: dict[str, Any] = {"review_pmid": review, **_text_json(text)}
    if criteria is not None:
        fields |= {
            "question": criteria.question,
            "pico": dict(criteria.pico),
            "inclusion": list(criteria.inclusion),
            "exclusion": list(criteria.exclusion),
            "criteria": dict(criteria.headings),
        }
    return fields


def paper_json(paper: str, text: ArticleText) -> dict[str, Any]:
    """A paper as a line of `papers.jsonl`."""
    return {"pmid": paper, **_text_json(text)}


def _text_json(text: ArticleText) -> dict[str, str | int | None]:
    # dataclasses.asdict copies deeply, which takes ten times as long
    return {"title": text.title, "abstract": text.abstract, "year": text.year}


def write_jsonl(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """One object a line."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        lines.writelines(
            json.dumps(item, ensure_ascii=False) + "\n" for item in objects
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """One object, indented, its keys in the order given."""
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8", newline="")
