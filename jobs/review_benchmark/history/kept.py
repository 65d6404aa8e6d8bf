"""What each agent reached on each review, as later runs will be held against it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from jobs.review_benchmark.measuring.benchmark import served_alone
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import PaperMatch
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import HistoryEntry
from store.results import ItemPart, ItemParts, ItemScore, Milestone


def kept(results: Results, concluded: Sequence[Verdicts]) -> HistoryEntry:
    """What is remembered of a scoring.

    A review is compared with itself alone where its truth and the way of matching are
    the same; the database may be another where that is asked for.
    """
    verdicts = {own.model: own for own in concluded}
    return HistoryEntry(
        milestone=Milestone(
            job="review-benchmark",
            measure="recall",
            item="review",
            part="study",
            data=results.database or "",
            items={
                review: sha256(f"{truth}\0{results.matching}".encode()).hexdigest()
                for review, truth in results.truth.items()
            },
            standings={
                model: {
                    review: _standing(results, column, review, verdicts.get(model))
                    for review in column.benchmarks
                }
                for model, column in results.columns.items()
            },
            partial=not results.sheet.imported
            and any(map(_is_unasked, results.sheet.rebuilt)),
        ),
        parts=ItemParts(
            names={
                review.id: [study.name for study in review.studies]
                for review in results.sheet.reviews
            },
            models={
                model: {
                    review: [_part(match) for match in matches]
                    for review, matches in column.matches.items()
                }
                for model, column in results.columns.items()
            },
        ),
    )


def _is_unasked(own: Rebuilt) -> bool:
    """Whether a candidate has no answer yet, nor a reason for having none."""
    return any(each.outcome == "open" and not each.failure for each in own.candidates)


def _standing(
    results: Results, column: Column, review: str, verdicts: Verdicts | None
) -> ItemScore:
    found = column.benchmarks[review]
    replicates = results.sheet.replicates
    return ItemScore(
        got=found.found_and_included,
        of=found.truth,
        passed=found.passes(results.dataset.settings.target_recall),
        tries=[
            served_alone(column.rebuilt[review], replicate)
            for replicate in range(replicates if replicates > 1 else 0)
        ],
        verdict=verdicts.passes(review)
        if verdicts is not None and review in verdicts.matches
        else None,
    )


def _part(match: PaperMatch) -> ItemPart:
    return ItemPart(got=match.included, score=match.score, lost_at=match.lost_at or "")
