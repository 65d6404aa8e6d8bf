"""Builds the tables of a scoring: short ones, and those with a row per paper.

The long tables have a row per truth paper, threshold, candidate or conclusion, and are
made while they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.kit.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.review_benchmark.agent_results import MATCHED, AgentResults, mean_curve
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.losses import LOST_AT, PaperMatch
from jobs.review_benchmark.results import PAIRED, BenchmarkResults
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Cell, Detail, StreamedRow, Table


def short_tables(results: BenchmarkResults) -> Iterator[Table]:
    """All of them, in the order of a report."""
    yield _per_review(results)
    if results.pairs:
        yield _comparison(results)


def _per_review(results: BenchmarkResults) -> Table:
    return Table(
        name="per_review",
        columns=(
            "cochrane_id",
            "model",
            "passed",
            "truth",
            "included",
            "found",
            "found_and_included",
            "not_found",
            "found_but_excluded",
            "recall",
            "precision",
            "ceiling",
            "retrieval_recall",
            "screening_recall",
            "recall_distinct",
            "nnr",
            *(f"lost_{step}" for step in LOST_AT),
            *(f"matched_{method}" for method in MATCHED),
            "distinct_documents",
            "candidates",
            "plan_fallback",
            "calls",
            "tokens_in",
            "tokens_out",
            "cost_usd",
            "skip",
        ),
        rows=tuple(
            _review(results, column, review)
            for column in results.columns.values()
            for review in column.benchmarks
        ),
        caption="What each agent came to for each review. The ceiling is the recall "
        "of an agent that includes every study that the papers searched have.",
    )


def _review(
    results: BenchmarkResults, column: AgentResults, review: str
) -> tuple[Cell, ...]:
    benchmark, rebuilt_review = column.benchmarks[review], column.rebuilt[review]
    lost = [match.lost_at for match in column.lost(review)]
    return (
        review,
        column.model,
        benchmark.passes(results.dataset.settings.target_recall),
        benchmark.truth,
        benchmark.included_rows,
        benchmark.found,
        benchmark.found_and_included,
        benchmark.not_found,
        benchmark.found_but_excluded,
        benchmark.recall,
        benchmark.precision,
        benchmark.ceiling,
        benchmark.retrieval_recall,
        benchmark.screening_recall,
        benchmark.recall_distinct,
        benchmark.nnr,
        *(lost.count(step) for step in LOST_AT),
        *(benchmark.methods.get(method, 0) for method in MATCHED),
        benchmark.documents,
        len(rebuilt_review.candidates),
        any(search.is_fallback for search in rebuilt_review.searches),
        rebuilt_review.spent.calls,
        rebuilt_review.spent.tokens_in,
        rebuilt_review.spent.tokens_out,
        rebuilt_review.spent.cost_usd,
        rebuilt_review.skip or None,
    )


def _comparison(results: BenchmarkResults) -> Table:
    return Table(
        name="comparison",
        columns=(
            "left",
            "right",
            "reviews",
            "dropped",
            "n",
            "left_alone",
            "right_alone",
            "mcnemar_p",
            "mcnemar_p_holm",
            *(
                name
                for path in PAIRED
                for name in (f"{path}.difference", f"{path}.lo", f"{path}.hi")
            ),
            *(f"{path}.{name}" for path in PAIRED for name in TESTED_COLUMNS),
        ),
        rows=tuple(
            (
                pair.left,
                pair.right,
                pair.reviews,
                pair.dropped,
                pair.n,
                pair.left_alone,
                pair.right_alone,
                pair.p,
                pair.p_holm,
                *(
                    cell
                    for path in PAIRED
                    for cell in difference_cells(pair.metrics.get(path))
                ),
                *(
                    cell
                    for path in PAIRED
                    for cell in tested_cells(pair.metrics.get(path))
                ),
            )
            for pair in results.pairs
        ),
        caption="Left minus right on the reviews that both have done. Each metric has "
        "its own test by review, corrected by Holm over all pairs of this table, and a "
        "verdict on the left model. McNemar's exact test of the studies that only one "
        "included ignores that studies of a review hang together; it is secondary and "
        "decides nothing.",
    )


MATCHES = (
    "cochrane_id",
    "model",
    "ground_truth_index",
    "cochrane_ref_id",
    "title",
    "pmid",
    "doi",
    "matched_document_id",
    "matched_title",
    "match_method",
    "match_confidence",
    "found",
    "was_included",
    "relevance_score",
    "lost_at",
    "suspicious",
)

LOST = (
    "cochrane_id",
    "model",
    "cochrane_ref_id",
    "title",
    "pmid",
    "doi",
    "matched_document_id",
    "lost_at",
    "score",
    "nearest_title",
    "nearest_ratio",
    "rationale",
    "hint",
)


@dataclass(frozen=True, slots=True)
class PaperTables:
    """The long files of a scoring: declared at once, filled row by row."""

    results: BenchmarkResults

    def tables(self) -> Iterator[Table]:
        """Their names and columns."""
        yield Table(
            name="lost_papers",
            columns=LOST,
            caption="Every included study that an agent did not include, with the step "
            "at which it was lost and what can be done about it.",
        )
        yield Table(
            name="matches",
            columns=MATCHES,
            caption="Each included study and its record, as it was matched.",
        )
        yield Table(
            name="threshold_sweep",
            columns=(
                "model",
                "cochrane_id",
                "threshold",
                "recall",
                "precision",
                "passed",
                "included",
                "micro_recall",
                "micro_precision",
            ),
            caption="Each score that occurs as the threshold: without a cochrane_id "
            "over all reviews, where recall and precision are means and passed is a "
            "number of reviews; then review by review.",
        )
        yield Table(
            name="retrieval_curve",
            columns=("model", "cochrane_id", "kept", "recall"),
            caption="How much of the truth the first candidates hold, at each place "
            "where it rises: without a cochrane_id the mean over reviews.",
        )

    def __iter__(self) -> Iterator[Detail]:
        for column in self.results.columns.values():
            for review, matches in column.matches.items():
                for match in matches:
                    cells = self._match(column, review, match)
                    yield StreamedRow(table="matches", cells=cells)
                    if match.lost_at is not None:
                        yield StreamedRow(
                            table="lost_papers",
                            cells=_lost(column.model, review, match),
                        )
        for column in self.results.columns.values():
            for cells in _sweep(column):
                yield StreamedRow(table="threshold_sweep", cells=cells)
            for cells in _curve(column):
                yield StreamedRow(table="retrieval_curve", cells=cells)

    def _match(
        self, column: AgentResults, review: str, match: PaperMatch
    ) -> tuple[Cell, ...]:
        record = column.rebuilt[review].records.get(match.document)
        paper = match.paper
        odd = column.suspicious[review]
        return (
            review,
            column.model,
            match.index,
            paper.ref_id or None,
            paper.title or None,
            paper.pmid or None,
            paper.doi or None,
            match.document or None,
            None if record is None else record.title or None,
            match.method,
            match.confidence,
            match.has_record,
            match.included,
            match.score,
            match.lost_at,
            "; ".join(
                suspicious_match.message
                for suspicious_match in odd
                if suspicious_match.index == match.index
            )
            or None,
        )


def _lost(model: str, review: str, match: PaperMatch) -> tuple[Cell, ...]:
    paper, near = match.paper, match.near
    return (
        review,
        model,
        paper.ref_id or None,
        paper.title or None,
        paper.pmid or None,
        paper.doi or None,
        match.document or None,
        match.lost_at,
        match.score,
        None if near is None else near.title,
        None if near is None else near.ratio,
        match.rationale or None,
        match.resolution,
    )


def _sweep(column: AgentResults) -> Iterator[tuple[Cell, ...]]:
    for overall_step in column.overall:
        yield (
            column.model,
            None,
            overall_step.threshold,
            overall_step.recall,
            overall_step.precision,
            overall_step.passed,
            overall_step.included_rows,
            overall_step.micro_recall,
            overall_step.micro_precision,
        )
    for review, steps in column.steps.items():
        for step in steps:
            yield (
                column.model,
                review,
                step.threshold,
                step.recall,
                step.precision,
                int(step.passed),
                step.included_rows,
                None,
                None,
            )


def _curve(column: AgentResults) -> Iterator[tuple[Cell, ...]]:
    for n_candidates, recall in mean_curve(column.curves):
        yield column.model, None, n_candidates, recall
    for review, points in column.curves.items():
        for point in points:
            yield column.model, review, point.n_candidates, point.recall


VERDICTS = (
    "cochrane_id",
    "model",
    "similarity",
    "threshold",
    "threshold_source",
    "passed",
    "direction",
    "reason",
    "agent_direction",
    "agent_certainty",
    "authors_direction",
    "authors_certainty",
    "effect",
    "effect_reason",
    "conclusion",
    "authors_conclusion",
    "rationale",
    "similar",
)
"""What a person needs who labels conclusions, and an empty column for the labels:
filled, the file is one of `verdict_labels`."""

NULL = ("cochrane_id", "model", "truth_cochrane_id", "similarity")


@dataclass(frozen=True, slots=True)
class VerdictFiles:
    """The files of the verdicts: declared at once, filled row by row."""

    concluded: Sequence[ConclusionVerdicts]
    reviews: Sequence[Review]

    def tables(self) -> Iterator[Table]:
        """Their names and columns; none where nothing was compared."""
        if not self.concluded:
            return
        yield Table(
            name="verdicts",
            columns=VERDICTS,
            caption="What each agent concludes of each review, beside its authors.",
        )
        yield Table(
            name="verdict_null",
            columns=NULL,
            caption="What each agent concludes of a review, beside the authors of "
            "another one.",
        )

    def __iter__(self) -> Iterator[Detail]:
        truths = {review.id: review.conclusion for review in self.reviews}
        for verdicts in self.concluded:
            for review in verdicts.matches:
                cells = _matched(verdicts, review, truths[review])
                yield StreamedRow(table="verdicts", cells=cells)
        for verdicts in self.concluded:
            for (review, truth), similarity in verdicts.mismatched.items():
                pair = (review, verdicts.model, truth, similarity)
                yield StreamedRow(table="verdict_null", cells=pair)


def _matched(verdicts: ConclusionVerdicts, review: str, truth: str) -> tuple[Cell, ...]:
    match, threshold = verdicts.matches[review], verdicts.threshold
    return (
        review,
        verdicts.model,
        match.similarity,
        None if threshold is None else threshold.value,
        None if threshold is None else threshold.source,
        verdicts.passes(review),
        " ".join(match.directions) or None,
        match.failure or None,
        match.agent.direction,
        match.agent.certainty,
        match.truth.direction,
        match.truth.certainty,
        None if match.effect is None else match.effect.outcome,
        None if match.effect is None else match.effect.reason,
        match.text or None,
        truth or None,
        match.rationale or None,
        None,
    )
