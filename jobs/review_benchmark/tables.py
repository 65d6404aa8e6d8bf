"""Declares the tables of a scoring: short ones, and those with a row per paper.

The long tables have a row per truth paper, threshold, candidate or conclusion, and are
computed while they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from jobs.kit.comparison.models import DIFFERENCE, TESTED, ModelPair
from jobs.kit.comparison.pairing import Overlap
from jobs.kit.tables import (
    Columns,
    StreamedTable,
    TableOf,
    count,
    flag,
    group,
    groups,
    number,
    per_key,
    text,
)
from jobs.review_benchmark.agent_results import MATCHED, AgentResults, mean_curve
from jobs.review_benchmark.benchmark import (
    OverallStep,
    ReviewBenchmarkCounts,
    ThresholdStep,
)
from jobs.review_benchmark.conclusion_similarity import SimilarityThreshold
from jobs.review_benchmark.data import Review, TruthPaper
from jobs.review_benchmark.losses import LOST_AT, PaperMatch
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview
from jobs.review_benchmark.results import PAIRED, BenchmarkResults
from jobs.review_benchmark.verdicts import ConclusionMatch, ConclusionVerdicts
from runner.scorecard import Table


def short_tables(results: BenchmarkResults) -> Iterator[Table]:
    """Yield the short tables, in the order of a report."""
    target = results.dataset.settings.target_recall
    yield PER_REVIEW.table(
        _ReviewRow(
            column,
            review,
            target,
            Counter(match.lost_at for match in column.matches[review]),
        )
        for column in results.columns.values()
        for review in column.benchmarks
    )
    if results.pairs:
        yield COMPARISON.table(results.pairs)


class _ReviewRow(NamedTuple):
    """One review under one agent."""

    agent: AgentResults
    review: str
    target_recall: float
    lost: Mapping[str | None, int]  #: its studies by the step that lost them

    @property
    def counts(self) -> ReviewBenchmarkCounts:
        return self.agent.benchmarks[self.review]

    @property
    def rebuilt(self) -> RebuiltReview:
        return self.agent.rebuilt[self.review]

    @property
    def has_fallback(self) -> bool:
        return any(search.is_fallback for search in self.rebuilt.searches)


PER_REVIEW = TableOf[_ReviewRow](
    name="per_review",
    columns=(
        text("cochrane_id", lambda row: row.review),
        text("model", lambda row: row.agent.model),
        flag("passed", lambda row: row.counts.passes(row.target_recall)),
        count("truth", lambda row: row.counts.truth, "included studies of the review"),
        count("included", lambda row: row.counts.included_rows, "by the agent"),
        count("found", lambda row: row.counts.found, "studies with a record"),
        count("found_and_included", lambda row: row.counts.found_and_included),
        count("not_found", lambda row: row.counts.not_found),
        count("found_but_excluded", lambda row: row.counts.found_but_excluded),
        number("recall", lambda row: row.counts.recall),
        number("precision", lambda row: row.counts.precision),
        number("ceiling", lambda row: row.counts.ceiling),
        number("retrieval_recall", lambda row: row.counts.retrieval_recall),
        number("screening_recall", lambda row: row.counts.screening_recall),
        number("recall_distinct", lambda row: row.counts.recall_distinct),
        number("nnr", lambda row: row.counts.nnr, "number needed to read"),
        per_key("lost_{}", LOST_AT, lambda row, step: row.lost.get(step, 0)),
        per_key("matched_{}", MATCHED, lambda row, by: row.counts.methods.get(by, 0)),
        count("distinct_documents", lambda row: row.counts.documents),
        count("candidates", lambda row: len(row.rebuilt.candidates)),
        flag("plan_fallback", lambda row: row.has_fallback),
        count("calls", lambda row: row.rebuilt.spent.calls),
        count("tokens_in", lambda row: row.rebuilt.spent.tokens_in),
        count("tokens_out", lambda row: row.rebuilt.spent.tokens_out),
        number("cost_usd", lambda row: row.rebuilt.spent.cost_usd),
        text("skip", lambda row: row.rebuilt.skip or None),
    ),
    caption="Results of each agent for each review. The ceiling is the recall "
    "of an agent that includes every study that the papers searched "
    "have.",
)


def _reviews(pair: ModelPair) -> Overlap:
    """Return the reviews that both have completed, and those that only one has."""
    return pair.metrics["macro.recall"].overlap


COMPARISON = TableOf[ModelPair](
    name="comparison",
    columns=(
        text("left", lambda pair: pair.left),
        text("right", lambda pair: pair.right),
        count("reviews", lambda pair: _reviews(pair).common, "that both have done"),
        count("dropped", lambda pair: _reviews(pair).unpaired),
        count("n", lambda pair: pair.sign_test.n, "studies of these reviews"),
        count("left_alone", lambda pair: pair.sign_test.left_alone),
        count("right_alone", lambda pair: pair.sign_test.right_alone),
        number("mcnemar_p", lambda pair: pair.sign_test.p),
        number("mcnemar_p_holm", lambda pair: pair.sign_test.p_holm),
        groups(DIFFERENCE, PAIRED, lambda pair, path: pair.metrics.get(path), "{}."),
        groups(TESTED, PAIRED, lambda pair, path: pair.metrics.get(path), "{}."),
    ),
    caption="Left minus right on the reviews that both have done. Each metric has "
    "its own test by review, corrected by Holm over all pairs of this table, and a "
    "verdict on the left model. McNemar's exact test of the studies that only one "
    "included ignores that studies of a review are dependent; it is secondary and "
    "decides nothing.",
)


class _MatchRow(NamedTuple):
    """One truth paper under one agent."""

    agent: AgentResults
    review: str
    match: PaperMatch

    @property
    def matched_title(self) -> str | None:
        record = self.agent.rebuilt[self.review].records.get(self.match.document)
        return None if record is None else record.title or None

    @property
    def suspicious(self) -> str | None:
        messages = [
            suspicious_match.message
            for suspicious_match in self.agent.suspicious[self.review]
            if suspicious_match.index == self.match.index
        ]
        return "; ".join(messages) or None


PAPER: tuple[Columns[TruthPaper], ...] = (
    text("cochrane_ref_id", lambda paper: paper.ref_id or None),
    text("title", lambda paper: paper.title or None),
    text("pmid", lambda paper: paper.pmid or None),
    text("doi", lambda paper: paper.doi or None),
)

MATCHES = TableOf[_MatchRow](
    name="matches",
    columns=(
        text("cochrane_id", lambda row: row.review),
        text("model", lambda row: row.agent.model),
        count("ground_truth_index", lambda row: row.match.index, "from 0"),
        group(PAPER, lambda row: row.match.paper),
        text("matched_document_id", lambda row: row.match.document or None),
        text("matched_title", lambda row: row.matched_title),
        text("match_method", lambda row: row.match.method),
        number("match_confidence", lambda row: row.match.confidence),
        flag("found", lambda row: row.match.has_record),
        flag("was_included", lambda row: row.match.included),
        number("relevance_score", lambda row: row.match.score),
        text("lost_at", lambda row: row.match.lost_at),
        text("suspicious", lambda row: row.suspicious),
    ),
    caption="Each included study and its record, as it was matched.",
)

LOST = TableOf[_MatchRow](
    name="lost_papers",
    columns=(
        text("cochrane_id", lambda row: row.review),
        text("model", lambda row: row.agent.model),
        group(PAPER, lambda row: row.match.paper),
        text("matched_document_id", lambda row: row.match.document or None),
        text("lost_at", lambda row: row.match.lost_at),
        number("score", lambda row: row.match.score),
        text("nearest_title", lambda row: t.title if (t := row.match.near) else None),
        number("nearest_ratio", lambda row: t.ratio if (t := row.match.near) else None),
        text("rationale", lambda row: row.match.rationale or None),
        text("hint", lambda row: row.match.resolution),
    ),
    caption="Every included study that an agent did not include, with the step "
    "at which it was lost and what can be done about it.",
)


class _SweepRow(NamedTuple):
    model: str
    review: str | None  #: None: over all reviews
    step: ThresholdStep | OverallStep
    micro_recall: float | None = None
    micro_precision: float | None = None


THRESHOLD_SWEEP = TableOf[_SweepRow](
    name="threshold_sweep",
    columns=(
        text("model", lambda row: row.model),
        text("cochrane_id", lambda row: row.review),
        number("threshold", lambda row: row.step.threshold),
        number("recall", lambda row: row.step.recall),
        number("precision", lambda row: row.step.precision),
        count("passed", lambda row: int(row.step.passed)),
        count("included", lambda row: row.step.included_rows),
        number("micro_recall", lambda row: row.micro_recall),
        number("micro_precision", lambda row: row.micro_precision),
    ),
    caption="Each score that occurs as the threshold: without a cochrane_id "
    "over all reviews, where recall and precision are means and passed is a "
    "number of reviews; then review by review.",
)


class _CurvePoint(NamedTuple):
    model: str
    review: str | None  #: None: the mean over reviews
    n_candidates: int
    recall: float | None


RETRIEVAL_CURVE = TableOf[_CurvePoint](
    name="retrieval_curve",
    columns=(
        text("model", lambda point: point.model),
        text("cochrane_id", lambda point: point.review),
        count("kept", lambda point: point.n_candidates),
        number("recall", lambda point: point.recall),
    ),
    caption="How much of the truth the first candidates hold, at each place "
    "where it rises: without a cochrane_id the mean over reviews.",
)


def paper_tables(results: BenchmarkResults) -> tuple[StreamedTable, ...]:
    """Return the long tables of a scoring, except those of conclusions."""
    return (
        LOST.streamed(
            lambda: (row for row in _matches(results) if row.match.lost_at is not None)
        ),
        MATCHES.streamed(partial(_matches, results)),
        THRESHOLD_SWEEP.streamed(partial(_sweep, results)),
        RETRIEVAL_CURVE.streamed(partial(_curve, results)),
    )


def _matches(results: BenchmarkResults) -> Iterator[_MatchRow]:
    for agent in results.columns.values():
        for review, matches in agent.matches.items():
            for match in matches:
                yield _MatchRow(agent, review, match)


def _sweep(results: BenchmarkResults) -> Iterator[_SweepRow]:
    for agent in results.columns.values():
        for overall in agent.overall:
            micro = overall.micro_recall, overall.micro_precision
            yield _SweepRow(agent.model, None, overall, *micro)
        for review, steps in agent.steps.items():
            for step in steps:
                yield _SweepRow(agent.model, review, step)


def _curve(results: BenchmarkResults) -> Iterator[_CurvePoint]:
    for agent in results.columns.values():
        for n_candidates, recall in mean_curve(agent.curves):
            yield _CurvePoint(agent.model, None, n_candidates, recall)
        for review, points in agent.curves.items():
            for point in points:
                yield _CurvePoint(agent.model, review, point.n_candidates, point.recall)


class _VerdictRow(NamedTuple):
    """One agent's conclusion about one review."""

    verdicts: ConclusionVerdicts
    review: str
    match: ConclusionMatch
    authors_conclusion: str

    @property
    def threshold(self) -> SimilarityThreshold | None:
        return self.verdicts.threshold


VERDICTS = TableOf[_VerdictRow](
    name="verdicts",
    columns=(
        text("cochrane_id", lambda row: row.review),
        text("model", lambda row: row.verdicts.model),
        number("similarity", lambda row: row.match.similarity),
        number("threshold", lambda row: t.value if (t := row.threshold) else None),
        text(
            "threshold_source", lambda row: t.source if (t := row.threshold) else None
        ),
        flag("passed", lambda row: row.verdicts.passes(row.review)),
        text("direction", lambda row: " ".join(row.match.directions) or None),
        text("reason", lambda row: row.match.failure or None),
        text("agent_direction", lambda row: row.match.agent.direction),
        text("agent_certainty", lambda row: row.match.agent.certainty),
        text("authors_direction", lambda row: row.match.truth.direction),
        text("authors_certainty", lambda row: row.match.truth.certainty),
        text("effect", lambda row: e.outcome if (e := row.match.effect) else None),
        text(
            "effect_reason", lambda row: e.reason if (e := row.match.effect) else None
        ),
        text("conclusion", lambda row: row.match.text or None),
        text("authors_conclusion", lambda row: row.authors_conclusion or None),
        text("rationale", lambda row: row.match.rationale or None),
        flag("similar", lambda _: None, "empty, for the label of a person"),
    ),
    caption="Conclusions of each agent for each review, compared with its authors.",
)
"""Has the columns that a person needs to label conclusions. With the labels filled in,
the file is valid as `verdict_labels`."""


class _Mismatch(NamedTuple):
    model: str
    review: str
    truth: str  #: the review of the authors' conclusion
    similarity: float


VERDICT_NULL = TableOf[_Mismatch](
    name="verdict_null",
    columns=(
        text("cochrane_id", lambda row: row.review),
        text("model", lambda row: row.model),
        text("truth_cochrane_id", lambda row: row.truth),
        number("similarity", lambda row: row.similarity),
    ),
    caption="Conclusions of each agent for a review, compared with the authors "
    "of another one.",
)


def verdict_tables(
    concluded: Sequence[ConclusionVerdicts], reviews: Sequence[Review]
) -> tuple[StreamedTable, ...]:
    """Return the tables of conclusions; none if nothing was compared."""
    if not concluded:
        return ()
    truths = {review.id: review.conclusion for review in reviews}
    return (
        VERDICTS.streamed(
            lambda: (
                _VerdictRow(verdicts, review, match, truths[review])
                for verdicts in concluded
                for review, match in verdicts.matches.items()
            )
        ),
        VERDICT_NULL.streamed(
            lambda: (
                _Mismatch(verdicts.model, review, truth, similarity)
                for verdicts in concluded
                for (review, truth), similarity in verdicts.mismatched.items()
            )
        ),
    )
