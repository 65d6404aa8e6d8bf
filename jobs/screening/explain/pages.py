"""`siftlog explain RUN ITEM...`: a page a record or review, from a run's answers."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.screening.dataset import Dataset
from jobs.screening.explain.record_page import record_lines
from jobs.screening.explain.review_page import review_lines
from jobs.screening.explain.run import Run
from jobs.screening.explain.selection import Selection, selections
from jobs.screening.gathering.records import screened
from runner.job import Answers


def explain(dataset: Dataset, answers: Answers, items: tuple[str, ...]) -> str:
    """Explain records, or reviews with what went wrong in them.

    Args:
        dataset: the inputs.
        answers: those of a run.
        items: records as `review:paper`, ids of reviews, or of papers.

    Raises:
        UsageError: an item names nothing in the run.
    """
    found = screened(dataset, answers)
    chosen = selections(items, found)
    run = Run.about(dataset, answers, found, {own.review for own in chosen})
    pages = ("\n".join(_lines(run, own)) for own in chosen)
    return "\n\n".join(pages) + "\n"


def _lines(run: Run, own: Selection) -> Iterator[str]:
    if own.record is None:
        return review_lines(run, own.review)
    return record_lines(run, own, own.record)
