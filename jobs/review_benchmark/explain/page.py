"""The pages: one a review, or a paper of it, and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jobs.replies import AnswerSubset
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.explain.before import paper_before, review_before
from jobs.review_benchmark.explain.paper import paper_lines
from jobs.review_benchmark.explain.review import review_lines
from jobs.review_benchmark.explain.selection import Selection, selections
from jobs.review_benchmark.explain.told import Told
from jobs.review_benchmark.gathering.gathering import sheet_of
from jobs.review_benchmark.measuring.results import measured
from jobs.text import WIDTH, cut, one_line
from runner.job import Answers

UNASKED = "nothing is known of it yet: its search plan is still to come"


def explain(dataset: Dataset, answers: Answers | None, items: tuple[str, ...]) -> str:
    """Explain reviews, or papers of them.

    Args:
        dataset: the inputs.
        answers: those of a run; None before any.
        items: ids of reviews, and papers as `REVIEW:PAPER`.

    Raises:
        UsageError: an item names nothing in the data or the run.
    """
    pages = [
        page
        for chosen in selections(items, dataset.reviews)
        for page in (
            _before(dataset, chosen)
            if answers is None
            else _after(dataset, answers, chosen)
        )
    ]
    return "\n\n".join("\n".join(page) for page in pages) + "\n"


def _before(dataset: Dataset, chosen: Selection) -> Iterator[Iterable[str]]:
    lines = paper_before if chosen.paper else review_before
    yield [_head(chosen, "before any run"), *lines(dataset, chosen)]


def _after(
    dataset: Dataset, answers: Answers, chosen: Selection
) -> Iterator[Iterable[str]]:
    review = chosen.review
    # nothing is fitted over reviews, so that the others play no part
    alone = replace(dataset, reviews=(review,))
    about = AnswerSubset.where(answers, lambda task: task.key == review.id)
    results = measured(alone, sheet_of(alone, about))
    for model, column in results.columns.items():
        head = _head(chosen, model)
        if review.id not in column.rebuilt:
            yield head, UNASKED
            continue
        told = Told(
            dataset=alone,
            review=review,
            column=column,
            families=tuple(f for f in about.held if f[0].task.model == model),
            is_own=not answers.imported,
        )
        lines = paper_lines(told, chosen.paper) if chosen.paper else review_lines(told)
        yield [head, *lines]


def _head(chosen: Selection, title: str) -> str:
    return cut(f"{one_line(chosen.name)}  {one_line(title)}", WIDTH)
