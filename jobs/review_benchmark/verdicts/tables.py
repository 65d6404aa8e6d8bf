"""verdicts.csv and verdict_null.csv: conclusions with their likeness, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.review_benchmark.review import Review
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import Cell, Detail, StreamedRow, Table

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

    found: Sequence[Verdicts]
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


def _matched(own: Verdicts, review: str, truth: str) -> tuple[Cell, ...]:
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
