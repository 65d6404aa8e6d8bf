"""The short tables: by review, and models compared."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import LOST_AT
from jobs.review_benchmark.measuring.metrics import MATCHED
from jobs.review_benchmark.measuring.pairs import PAIRED
from jobs.review_benchmark.measuring.results import Results
from runner.scorecard import Cell, Table


def short_tables(results: Results) -> Iterator[Table]:
    """All of them, in the order of a report."""
    yield _per_review(results)
    if results.pairs:
        yield _comparison(results)


def _per_review(results: Results) -> Table:
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


def _review(results: Results, column: Column, review: str) -> tuple[Cell, ...]:
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


def _comparison(results: Results) -> Table:
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
