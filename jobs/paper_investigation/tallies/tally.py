"""All that is counted about one model, while its papers pass by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.paper_investigation.marking.judging import Judgement
from jobs.paper_investigation.marking.lenses import Lenses
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.record import Item, Mode
from jobs.paper_investigation.settings import PIPELINES, Pipeline
from jobs.paper_investigation.tallies.breakdown import Breakdown
from jobs.paper_investigation.tallies.examples import Smallest, drawn
from jobs.paper_investigation.tallies.extraction import Extraction
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.flips import Flips
from jobs.paper_investigation.tallies.headline import headline, under
from jobs.paper_investigation.tallies.measure import Measure, count
from jobs.paper_investigation.tallies.replies import Replies
from jobs.paper_investigation.tallies.study import Study

DRAWN_ANSWERS = 5
"""Right and wrong answers that a stand-alone summary shows."""


Answered: TypeAlias = tuple[Item, Judgement]


class Tally:
    """One model, over all replicates or in one of them."""

    def __init__(self, lenses: Lenses, mode: Mode) -> None:
        self.papers = Papers()
        self.breakdown = Breakdown()
        self.extraction = Extraction()
        self.replies = Replies()
        self.flips = Flips()
        self.study = Study()
        self._under = {name: Papers() for name in lenses.others}
        self._lenses = lenses
        self._mode: Mode = mode
        n = lenses.chosen.settings.n_examples
        self._worst: Smallest[MarkedPaper] = Smallest(n)
        self._best: Smallest[MarkedPaper] = Smallest(n)
        self._answers: dict[tuple[Pipeline, bool], Smallest[Answered]] = {
            (pipeline, is_right): Smallest(DRAWN_ANSWERS)
            for pipeline in PIPELINES
            for is_right in (True, False)
        }

    def add(self, paper: MarkedPaper, others: Mapping[str, MarkedPaper]) -> None:
        """Count one paper, as the chosen lens and the *others* show it."""
        self.breakdown.add(paper)
        self.replies.add(paper)
        self.flips.add(paper, self._lenses.others[self._lenses.rules].rules)
        self.study.add(paper)
        if self._mode == "questions":
            self._keep_answers(paper)
            return
        self.papers.add(paper)
        self.extraction.add(paper)
        for name, seen in others.items():
            self._under[name].add(seen)
        if self._mode == "extract":
            self._keep_extremes(paper)

    @property
    def clusters(self) -> Sequence[str]:
        """The papers that intervals are drawn from, ascending as text."""
        if self._mode == "questions":
            return self.breakdown.papers
        return self.papers.scored

    @property
    def worst(self) -> list[MarkedPaper]:
        """Papers with the lowest recall, ascending; kept in mode extract."""
        return list(self._worst)

    @property
    def best(self) -> list[MarkedPaper]:
        """Papers with the highest recall, descending; the old profile ascends."""
        kept = list(self._best)
        return kept[::-1] if self._is_recorded else kept

    def examples(self, pipeline: Pipeline, *, is_right: bool) -> list[Answered]:
        """A few answers drawn by seed; kept in mode questions."""
        return list(self._answers[pipeline, is_right])

    def measures(self) -> Iterator[Measure]:
        """Everything there is to say about the model, in reading order."""
        if self._mode != "questions":
            yield from headline(self.papers, self._mode)
            for name, papers in self._under.items():
                yield from under(name, papers, self._mode)
            yield from self._hidden()
            yield from self.extraction.measures(self.clusters)
        if self._mode != "extract":
            level = self._lenses.chosen.settings.level
            yield from self.breakdown.measures(self.clusters, level)
            yield from self.flips.measures(self._lenses.rules)
            yield from self.study.measures()
        yield from self.replies.measures()

    def _hidden(self) -> Iterator[Measure]:
        split = self._under.get("split")
        if split is not None:
            reached = self.papers.total(lambda paper: paper.planned)
            yield count(
                "questions_hidden",
                split.total(lambda paper: paper.planned) - reached,
                "questions that whole links keep from being asked",
            )

    @property
    def _is_recorded(self) -> bool:
        return self._lenses.chosen.settings.profile == "clinpgx-qa"

    def _keep_extremes(self, paper: MarkedPaper) -> None:
        recall = paper.recall
        if recall is None:
            return
        pmcid, place = paper.record.pmcid, len(self.papers)
        # the old profile sorts once, in record order, and shows both ends of the list
        low, high = (place, -place) if self._is_recorded else (pmcid, pmcid)
        self._worst.add((recall, low), paper)
        self._best.add((-recall, high), paper)

    def _keep_answers(self, paper: MarkedPaper) -> None:
        seed = self._lenses.chosen.settings.boot_seed
        for marked in paper.questions:
            item, judgement = marked.item, marked.judgement
            if judgement is not None:
                question = item.question
                key = drawn(seed, paper.record.model, question.question_id)
                kept = self._answers[question.pipeline, judgement.right]
                kept.add(key, (item, judgement))
