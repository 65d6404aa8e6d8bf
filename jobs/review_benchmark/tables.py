"""Builds the tables of a scoring: short ones, and those with a row per paper.

The long tables have a row per truth paper, threshold, candidate or conclusion, and are
made while they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
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
    found, own = column.benchmarks[review], column.rebuilt[review]
    lost = [match.lost_at for match in column.lost(review)]
    return (
        review,
        column.model,
        found.passes(results.dataset.settings.target_recall),
        found.truth,
        found.included_rows,
        found.found,
        found.found_and_included,
        found.not_found,
        found.found_but_excluded,
        found.recall,
        found.precision,
        found.ceiling,
        found.retrieval_recall,
        found.screening_recall,
        found.recall_distinct,
        found.nnr,
        *(lost.count(step) for step in LOST_AT),
        *(found.methods.get(method, 0) for method in MATCHED),
        found.documents,
        len(own.candidates),
        any(each.is_fallback for each in own.searches),
        own.spent.calls,
        own.spent.tokens_in,
        own.spent.tokens_out,
        own.spent.cost_usd,
        own.skip or None,
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
                own.left,
                own.right,
                own.reviews,
                own.dropped,
                own.n,
                own.left_alone,
                own.right_alone,
                own.p,
                own.p_holm,
                *(
                    cell
                    for path in PAIRED
                    for cell in difference_cells(own.metrics.get(path))
                ),
                *(
                    cell
                    for path in PAIRED
                    for cell in tested_cells(own.metrics.get(path))
                ),
            )
            for own in results.pairs
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
            match.found,
            match.included,
            match.score,
            match.lost_at,
            "; ".join(own.message for own in odd if own.index == match.index) or None,
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
    for own in column.overall:
        yield (
            column.model,
            None,
            own.threshold,
            own.recall,
            own.precision,
            own.passed,
            own.included_rows,
            own.micro_recall,
            own.micro_precision,
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
    for kept, recall in mean_curve(column.curves):
        yield column.model, None, kept, recall
    for review, points in column.curves.items():
        for point in points:
            yield column.model, review, point.kept, point.recall


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

    found: Sequence[ConclusionVerdicts]
    reviews: Sequence[Review]

    def tables(self) -> Iterator[Table]:
        """Their names and columns; none where nothing was compared."""
        if not self.found:
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
        for own in self.found:
            for review in own.matches:
                cells = _matched(own, review, truths[review])
                yield StreamedRow(table="verdicts", cells=cells)
        for own in self.found:
            for (review, truth), similarity in own.mismatched.items():
                pair = (review, own.model, truth, similarity)
                yield StreamedRow(table="verdict_null", cells=pair)


def _matched(own: ConclusionVerdicts, review: str, truth: str) -> tuple[Cell, ...]:
    match, drawn = own.matches[review], own.threshold
    return (
        review,
        own.model,
        match.similarity,
        None if drawn is None else drawn.value,
        None if drawn is None else drawn.source,
        own.passes(review),
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
