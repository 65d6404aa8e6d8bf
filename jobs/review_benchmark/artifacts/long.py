"""The files with a line a truth paper, threshold or candidate, made while written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.curve import mean_curve
from jobs.review_benchmark.measuring.lost import PaperMatch
from jobs.review_benchmark.measuring.results import Results
from runner.scorecard import Cell, Detail, StreamedRow, Table

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
class LongFiles:
    """The long files of a scoring: declared at once, filled row by row."""

    results: Results

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
        self, column: Column, review: str, match: PaperMatch
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


def _sweep(column: Column) -> Iterator[tuple[Cell, ...]]:
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


def _curve(column: Column) -> Iterator[tuple[Cell, ...]]:
    for kept, recall in mean_curve(column.curves):
        yield column.model, None, kept, recall
    for review, points in column.curves.items():
        for point in points:
            yield column.model, review, point.kept, point.recall
