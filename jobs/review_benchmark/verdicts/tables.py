"""The rows of verdicts.csv and verdict_null.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobs.review_benchmark.review import Review
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import Cell, Table


def tables(found: Sequence[Verdicts], reviews: Iterable[Review]) -> Iterator[Table]:
    """Conclusions with their likeness, and the pairs that do not belong together.

    The first table has what a person needs who labels conclusions, and an empty column
    for it: filled, the file is read by `verdict_labels`.
    """
    truths = {review.id: review.conclusion for review in reviews}
    yield Table(
        name="verdicts",
        columns=(
            "cochrane_id",
            "model",
            "similarity",
            "threshold",
            "threshold_source",
            "passed",
            "direction",
            "reason",
            "conclusion",
            "authors_conclusion",
            "similar",
        ),
        rows=tuple(row for own in found for row in _matched(own, truths)),
        caption="Conclusions of agents beside those of the authors.",
    )
    yield Table(
        name="verdict_null",
        columns=("cochrane_id", "model", "truth_cochrane_id", "similarity"),
        rows=tuple(
            (review, own.model, truth, similarity)
            for own in found
            for (review, truth), similarity in own.mismatched.items()
        ),
        caption="Conclusions of agents beside those of other reviews' authors.",
    )


def _matched(own: Verdicts, truths: dict[str, str]) -> Iterator[tuple[Cell, ...]]:
    drawn = own.threshold
    for review, match in own.matches.items():
        yield (
            review,
            own.model,
            match.similarity,
            None if drawn is None else drawn.value,
            None if drawn is None else drawn.source,
            own.passes(review),
            " ".join(match.directions),
            match.failure,
            match.text,
            truths[review],
            None,
        )
