"""What a run holds of a few reviews: its answers, and what they come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jobs.metrics.columns import Ints
from jobs.replies import AnswerSubset
from jobs.screening.corpus import Text
from jobs.screening.dataset import Dataset
from jobs.screening.decisions import Decisions, Records, Sheet
from jobs.screening.gathering.gathering import sheet_of
from jobs.screening.gathering.records import Screened
from jobs.screening.measuring.ranking import Ranked, ranked
from jobs.screening.measuring.view import View, text_rank
from runner.job import Answer, Answers, Task

_NO_TEXT = Text()


@dataclass(frozen=True)
class Run:
    """A run as pages about a few reviews need it.

    What a record comes to, and its rank, depend on its own review alone, so that the
    replies of all others are passed over unread.
    """

    dataset: Dataset
    found: Screened
    answers: AnswerSubset

    @classmethod
    def about(
        cls,
        dataset: Dataset,
        answers: Answers,
        found: Screened,
        reviews: Collection[str],
    ) -> Run:
        """The part of a run that is about *reviews*, from one pass over its answers."""
        return cls(
            dataset=dataset,
            found=found,
            answers=AnswerSubset.where(
                answers, lambda task: review_of(task) in reviews
            ),
        )

    @property
    def records(self) -> Records:
        """What was screened, and the truth."""
        return self.found.records

    @cached_property
    def _rank(self) -> Ints:
        return text_rank(self.records)

    @cached_property
    def _sheet(self) -> Sheet:
        return sheet_of(self.dataset, self.answers, self.found)

    @cached_property
    def views(self) -> Mapping[str, View]:
        """What each model, and each ensemble after them, decides."""
        return {own.model: self._view(own) for own in self._sheet.decisions}

    def replicates(self, model: str) -> Sequence[View]:
        """What each replicate of a model decides; none where there is but one."""
        return [self._view(own) for own in self._sheet.replicates if own.model == model]

    def _view(self, own: Decisions) -> View:
        return View(self.records, own, self.dataset.settings, self._rank)

    def ranked(self, view: View, review: str) -> Ranked:
        """A review in the order of a model."""
        place = self.records.reviews.index(review)
        (own,) = ranked(view, self.records.review == place)
        return own

    def about_item(self, key: str) -> Iterator[Answer]:
        """The answers about one item, in the order of the log."""
        for family in self.answers.families():
            yield from (answer for answer in family if answer.task.key == key)

    def review_title(self, review: str) -> str:
        """Its title; empty where the data hold none."""
        return self.review(review).title

    def review(self, review: str) -> Text:
        """Its text; blank where the data hold none."""
        try:
            return self.dataset.review(review).text
        except KeyError:
            return _NO_TEXT

    def paper(self, paper: str) -> Text:
        """Its text; an import without a set has none."""
        try:
            return self.dataset.paper(paper)
        except KeyError:
            return _NO_TEXT


def review_of(task: Task) -> str:
    """The review that a task is about: ids hold no colon."""
    return task.key.partition(":")[0]
