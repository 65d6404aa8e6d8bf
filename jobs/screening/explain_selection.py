"""Selects the records and reviews to explain, with the answers about them.

`9800001:97000002` and `9800001/97000002` are a record, `9800001` is a review, and the
id of a paper selects each record that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jobs.kit import explain
from jobs.kit.metrics.columns import Ints
from jobs.kit.replies import AnswerSubset
from jobs.screening.data import NO_TEXT, ArticleText, record_key
from jobs.screening.decisions import (
    Decisions,
    DecisionView,
    Records,
    ScreenedRecords,
    ScreeningPredictions,
    text_rank,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.predictions import collect_predictions
from jobs.screening.prompts import CriteriaSource, ReviewDescription, describe_review
from jobs.screening.ranking import RankedReview, rank_reviews
from jobs.screening.replies import read_answers
from runner.job import Answer, Answers, Task
from store.document import Block, Fact, Quote
from store.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRecord:
    """A record, or a whole review."""

    review: str
    record: int | None = None  #: index among all; None: the whole review


def select(
    items: Iterable[str], screened: ScreenedRecords
) -> tuple[SelectedRecord, ...]:
    """Return the records and reviews that items name, each once, in their order.

    Raises:
        UsageError: an item matches nothing; the message has similar names.
    """
    chosen = explain.select(
        map(str.strip, items),
        lambda item: _select_named(item, screened),
        kinds="review and no record",
        otherwise="name a review by its id, or a record as review:paper.",
        near=lambda item: _near(item, screened),
    )
    return tuple(dict.fromkeys(chosen))


def _select_named(item: str, screened: ScreenedRecords) -> list[SelectedRecord]:
    records = screened.records
    slashes = (at for at, sign in enumerate(item) if sign == "/")
    split = (record_key(item[:at], item[at + 1 :]) for at in slashes)
    for key in (item, *split):
        if key in screened.index_by_key:
            return [_select_record(screened, screened.index_by_key[key])]
    if item in records.reviews:
        return [SelectedRecord(review=item)]
    indices = (at for at, paper in enumerate(records.papers) if paper == item)
    return [_select_record(screened, at) for at in indices]


def _select_record(screened: ScreenedRecords, at: int) -> SelectedRecord:
    records = screened.records
    return SelectedRecord(review=records.reviews[records.review[at]], record=at)


def _near(item: str, screened: ScreenedRecords) -> Iterator[str]:
    """Yield names like *item*: papers of the review that it names, then any others."""
    records = screened.records
    review, sign, paper = item.replace("/", ":", 1).partition(":")
    if not sign:
        ids = dict.fromkeys((*records.reviews, *records.papers))
        yield from explain.closest(item, ids)
    elif review in records.reviews:
        rows = np.flatnonzero(records.review == records.reviews.index(review))
        papers = [records.papers[at] for at in rows.tolist()]
        for name in explain.closest(paper, papers, always=True):
            yield record_key(review, name)
    else:
        for name in explain.closest(review, records.reviews, always=True):
            key = record_key(name, paper)
            yield key if key in screened.index_by_key else name


@dataclass(frozen=True)
class ExplainedScreening:
    """A run, limited to the reviews that a page shows.

    The outcome and the rank of a record depend only on its review, so replies about
    other reviews are not read.
    """

    dataset: ScreeningDataset
    screened: ScreenedRecords
    answers: AnswerSubset

    @classmethod
    def about(
        cls,
        dataset: ScreeningDataset,
        answers: Answers,
        screened: ScreenedRecords,
        reviews: Collection[str],
    ) -> ExplainedScreening:
        """Select the part of a run about *reviews*, in one pass over its answers."""
        return cls(
            dataset=dataset,
            screened=screened,
            answers=AnswerSubset.matching(
                answers, lambda task: review_of(task) in reviews
            ),
        )

    @property
    def records(self) -> Records:
        """Screened records and their labels."""
        return self.screened.records

    @cached_property
    def _rank(self) -> Ints:
        return text_rank(self.records)

    @cached_property
    def _predictions(self) -> ScreeningPredictions:
        columns = read_answers(self.answers)
        return collect_predictions(self.dataset, columns, self.screened)

    @cached_property
    def views(self) -> Mapping[str, DecisionView]:
        """Decisions of each model, then of each ensemble."""
        return {
            decisions.model: self._view(decisions)
            for decisions in self._predictions.decisions
        }

    def replicates(self, model: str) -> Sequence[DecisionView]:
        """Return the decisions of each replicate of a model, if there are several."""
        return [
            self._view(decisions)
            for decisions in self._predictions.replicates
            if decisions.model == model
        ]

    def _view(self, decisions: Decisions) -> DecisionView:
        return DecisionView(self.records, decisions, self.dataset.settings, self._rank)

    def ranked(self, view: DecisionView, review: str) -> RankedReview:
        """Return a review in the order of a model."""
        review_index = self.records.reviews.index(review)
        (ranked,) = rank_reviews(view, self.records.review == review_index)
        return ranked

    def about_item(self, key: str) -> Iterator[Answer]:
        """Yield the answers about one item, in the order of the log."""
        for family in self.answers.families():
            yield from (answer for answer in family if answer.task.key == key)

    def review_title(self, review: str) -> str:
        """Return the title of a review, or "" if it is unknown."""
        return self.review(review).title

    def review(self, review: str) -> ArticleText:
        """Return the text of a review, blank if it is unknown."""
        try:
            return self.dataset.review(review).text
        except KeyError:
            return NO_TEXT

    def paper(self, paper: str) -> ArticleText:
        """Return the text of a paper, blank in an import without a set."""
        try:
            return self.dataset.paper(paper)
        except KeyError:
            return NO_TEXT


def review_of(task: Task) -> str:
    """Return the review that a task is about; ids have no colon."""
    return task.key.partition(":")[0]


SOURCES: Mapping[CriteriaSource, str] = {
    "llm": "criteria that a model stated",
    "file": "the file of criteria",
    "sections": "sections of the review's abstract",
    "title": "the review's title alone",
}


def description_blocks(
    run: ExplainedScreening, review: str, answers: Iterable[Answer]
) -> Iterator[Block]:
    """Yield the description of a review in prompts, once if all have the same.

    Args:
        run: the run with settings and texts.
        review: its id.
        answers: answers about its shown records; an import has no prompts.
    """
    if run.answers.imported:
        yield Fact("prompt", "not known: the decisions were imported")
        return
    recipients: dict[ReviewDescription, list[str]] = {}
    for answer in answers:
        task = answer.task
        description = describe_review(
            run.dataset.settings, run.dataset.review(review), task.context
        )
        name = f"{task.model}, replicate {task.replicate}"
        recipients.setdefault(description, []).append(name)
    for description, names in recipients.items():
        listed = ", ".join(dict.fromkeys(names))
        suffix = f" ({listed})" if len(recipients) > 1 else ""
        source = f"from {SOURCES[description.source]}{suffix}"
        yield Fact("prompt", source, is_wide=True)
        for label, text in description.lines:
            yield Quote(f"{label}: {one_line(text)}")
