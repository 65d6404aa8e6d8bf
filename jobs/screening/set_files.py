"""Builds a validation set in one pass over the reviews and writes its files.

Long tables are written row by row while the set is built. The files contain no time and
no path, so equal inputs give equal bytes.

A near miss is unjudged: a review that does not include it may never have seen it. If
exclusions are known, `Contamination` bounds the share that may be eligible.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import structs

from jobs.kit.metrics.columns import mean, ratio
from jobs.kit.tables import TableOf, count, number, text
from jobs.screening.corpus import Corpus
from jobs.screening.data import (
    KINDS,
    ArticleText,
    Criteria,
    Exclusion,
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
from jobs.screening.topic_drift import (
    KindSimilarity,
    ReviewDrift,
    TopicDrift,
    tfidf_vectors,
)
from runner.table_files import harmless

CandidateRow: TypeAlias = tuple[str, str, int, int, int]
"""A near miss in `candidates.csv`: review, paper, links, shared, drawn (1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """Near-miss candidates of one review, or of all, by the review's known decision."""

    confirmed: int = 0  #: the review excluded it
    pending: int = 0  #: awaiting assessment, or ongoing
    duplicate_suspect: int = 0  #: has the title or study of an included paper
    unverified: int = 0

    @property
    def n(self) -> int:
        """Number of candidates."""
        return self.confirmed + self.pending + self.duplicate_suspect + self.unverified

    @property
    def share_confirmed(self) -> float | None:
        """Share that is known to be ineligible."""
        return ratio(self.confirmed, self.n)

    @property
    def lower(self) -> float | None:
        """Lower bound on the share that may be eligible."""
        return ratio(self.pending + self.duplicate_suspect, self.n)

    @property
    def upper(self) -> float | None:
        """Upper bound on the share that may be eligible."""
        return None if not self.n else 1 - self.confirmed / self.n


def contamination(
    corpus: Corpus,
    candidates: Iterable[str],
    included: Iterable[str],
    exclusions: Mapping[str, Exclusion],
    study: Mapping[str, str],
) -> Contamination:
    """Count the candidates of one review; the first category that applies counts.

    Args:
        corpus: titles.
        candidates: papers.
        included: papers that the review includes.
        exclusions: papers that the review has excluded or not decided, by paper.
        study: the study of a paper, if any review names it.
    """
    included_papers = list(included)
    titles = {_normal(corpus.text(paper).title) for paper in included_papers} - {""}
    studies = {study[paper] for paper in included_papers if paper in study}
    counts: Counter[str] = Counter()
    for paper in candidates:
        exclusion = exclusions.get(paper)
        if exclusion is not None:
            part = "confirmed" if exclusion.status == "excluded" else "pending"
        elif _normal(corpus.text(paper).title) in titles or study.get(paper) in studies:
            part = "duplicate_suspect"
        else:
            part = "unverified"
        counts[part] += 1
    return Contamination(**counts)


def together(contaminations: Iterable[Contamination]) -> Contamination:
    """Return the sum of the candidates of several reviews."""
    totals = Counter[str]()
    for part in contaminations:
        totals.update(asdict(part))
    return Contamination(**totals)


def macro_confirmed(contaminations: Iterable[Contamination]) -> float | None:
    """Return the mean of the reviews' confirmed shares."""
    return mean(part.share_confirmed for part in contaminations)


def _normal(title: str) -> str:
    """Return a title without case, punctuation and spacing."""
    return "".join(sign for sign in title.casefold() if sign.isalnum())


@dataclass(slots=True, kw_only=True)
class BuiltSet:
    """Result of building a set; rows have already been written."""

    statistics: list[ReviewStatistics] = field(default_factory=list)
    analysed: list[ReviewStatistics] = field(default_factory=list)  #: with enough
    drift: list[ReviewDrift] = field(default_factory=list)
    contamination: dict[str, Contamination] = field(default_factory=dict)
    kinds: Counter[RecordKind] = field(default_factory=Counter)  #: records by kind
    papers: set[str] = field(default_factory=set)  #: papers of any record
    reviews: list[str] = field(default_factory=list)  #: reviews in the set
    pools: Counter[str] = field(default_factory=Counter)  #: papers by kind
    dropped: Counter[str] = field(default_factory=Counter)  #: reviews by reason
    short: dict[str, Mapping[RecordKind, int]] = field(default_factory=dict)
    drawn_counts: dict[str, Mapping[RecordKind, int]] = field(default_factory=dict)
    """Papers drawn of the kinds that are short; with `short`, the requested number."""


def build(
    corpus: Corpus,
    graph: Graph,
    settings: ScreeningSettings,
    *,
    candidates: Callable[[Iterable[CandidateRow]], None],
    records: Callable[[Iterable[ScreeningRecord]], None],
) -> BuiltSet:
    """Build the set in one pass.

    Args:
        corpus: all inputs.
        graph: graph of its citations.
        settings: settings of the draw.
        candidates: receives the candidates, review by review.
        records: receives the drawn records in the same way: a hundred thousand reviews
            have millions of both.
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
                structs.replace(record, similarity=topic.of(record.paper))
                if topic
                else record
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
    # tuples, not objects: there may be tens of millions
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
    """A CSV file that is written row by row; cells are written unchanged."""

    def __init__(self, lines: Any, columns: Sequence[str]) -> None:  # noqa: ANN401
        self._writer = csv.writer(lines, lineterminator="\n")
        self._writer.writerow(columns)

    def add(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Append rows; None becomes an empty cell."""
        self._writer.writerows(rows)


@contextmanager
def csv_table(path: Path, columns: Sequence[str]) -> Iterator[CsvTable]:
    """Open a table for writing."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        yield CsvTable(lines, columns)


class _KindDrift(NamedTuple):
    drift: ReviewDrift
    kind: RecordKind
    similarity: KindSimilarity


def kind_drifts(drift: Iterable[ReviewDrift]) -> Iterator[_KindDrift]:
    """Yield the kinds of each review, in set order."""
    for review_drift in drift:
        for kind in KINDS:
            similarity = review_drift.kinds.get(kind)
            if similarity is not None:
                yield _KindDrift(review_drift, kind, similarity)


STATISTICS = TableOf[ReviewStatistics](
    name="near_miss_stats",
    columns=(
        text("review_pmid", lambda row: row.review),
        count("n_references", lambda row: row.n_references),
        count("n_included", lambda row: row.n_included),
        count("n_related_reviews", lambda row: row.n_related_reviews),
        count("n_related_papers", lambda row: row.n_related_papers),
        count("n_candidates", lambda row: row.n_candidates),
        text("candidates_sha256", lambda row: row.candidates_sha256),
    ),
)

DRIFT = TableOf[_KindDrift](
    name="topic_drift",
    columns=(
        text("review_pmid", lambda row: row.drift.review),
        text("kind", lambda row: row.kind),
        count("n", lambda row: row.similarity.n),
        number("mean", lambda row: row.similarity.mean),
        number("p25", lambda row: row.similarity.quartiles[0]),
        number("median", lambda row: row.similarity.quartiles[1]),
        number("p75", lambda row: row.similarity.quartiles[2]),
        number("separability", lambda row: row.similarity.separability),
        number("mean_jaccard", lambda row: row.drift.jaccard),
    ),
)

CONTAMINATION = TableOf[tuple[str, Contamination]](
    name="contamination",
    columns=(
        text("review_pmid", lambda row: row[0]),
        count("n_candidates", lambda row: row[1].n),
        count("confirmed", lambda row: row[1].confirmed),
        count("pending", lambda row: row[1].pending),
        count("duplicate_suspect", lambda row: row[1].duplicate_suspect),
        count("unverified", lambda row: row[1].unverified),
        number("share_confirmed", lambda row: row[1].share_confirmed),
        number("lower", lambda row: row[1].lower),
        number("upper", lambda row: row[1].upper),
    ),
)

Row = TypeVar("Row")


def write_table(folder: Path, table: TableOf[Row], rows: Iterable[Row]) -> None:
    """Write a short table as a CSV file."""
    with csv_table(folder / f"{table.name}.csv", table.names) as lines:
        lines.add(map(table.cells, rows))


def record_row(record: ScreeningRecord) -> Sequence[Cell]:
    """Return a record as a row of `validation_set.csv`."""
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


def review_json(
    review: str, text: ArticleText, criteria: Criteria | None
) -> dict[str, Any]:
    """Return a review as a line of `reviews.jsonl`, with its criteria if any."""
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
    """Return a paper as a line of `papers.jsonl`."""
    return {"pmid": paper, **_text_json(text)}


def _text_json(text: ArticleText) -> dict[str, str | int | None]:
    # dataclasses.asdict copies deeply, which takes ten times as long
    return {"title": text.title, "abstract": text.abstract, "year": text.year}


def write_jsonl(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        lines.writelines(
            json.dumps(item, ensure_ascii=False) + "\n" for item in objects
        )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one indented object, with its keys in the given order."""
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8", newline="")
