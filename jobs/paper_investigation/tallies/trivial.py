"""What the questions come to for whoever answers them without reading.

Accuracies and scores are linear in which answers are right, so that a weight for each
expected answer is all that is kept; which answer is the most frequent is known last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.baselines import Baseline
from jobs.metrics import ratio
from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.marking.judging import expected
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.settings import PIPELINES
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.headline import QUESTION_ACC, SCORE
from jobs.paper_investigation.tallies.study import NOT_FOUND

STUDY = "study_param"
FREQUENT, ABSENT = "most_frequent", "not_found"

Chosen: TypeAlias = Mapping[str, str]
"""By pipeline: the answer that is always given."""


class Trivial:
    """The expected answers of one model's questions, and what each is worth."""

    def __init__(self) -> None:
        self._answers: dict[str, Counter[str]] = defaultdict(Counter)
        self._accuracy: dict[tuple[str, str], float] = defaultdict(float)
        self._score: dict[tuple[str, str], float] = defaultdict(float)
        self._with_questions = 0
        self._scored = 0

    def add(self, paper: MarkedPaper) -> None:
        """Count the questions of one paper in one replicate that have a reply."""
        for marked in paper.questions:
            if marked.judgement is not None:
                question = marked.item.question
                self._answers[question.pipeline][_folded(question)] += 1
        if paper.skip is not None or paper.score is None:
            return
        self._scored += 1
        self._with_questions += bool(paper.accuracies)
        for variant in paper.accuracies:
            answered = [m for m in paper.links[variant] if m.judgement is not None]
            share = 1 / len(answered) / len(paper.accuracies)
            for marked in answered:
                question = marked.item.question
                key = question.pipeline, _folded(question)
                self._accuracy[key] += share
                self._score[key] += share * (paper.recall or 0.0)

    def baselines(self) -> Iterator[Baseline]:
        """Always the most frequent answer of a pipeline; always "not found"."""
        frequent = {
            name: min(own, key=lambda answer: (-own[answer], answer))
            for name, own in self._answers.items()
        }
        absent = {**frequent, STUDY: _absent()}
        yield from self._always(
            FREQUENT,
            "always the most frequent answer",
            frequent,
            "each pipeline's most frequent expected answer, given to all its questions",
            [pipe for pipe in PIPELINES if frequent.get(pipe) != _absent()],
        )
        if STUDY in self._answers:
            yield from self._always(
                ABSENT,
                "always not found",
                absent,
                "p-value and significance 'not found' in every study question, the "
                "most frequent letter elsewhere",
                [STUDY],
                is_whole=absent != frequent,
            )

    def _always(
        self,
        key: str,
        name: str,
        chosen: Chosen,
        how: str,
        pipelines: Sequence[str],
        *,
        is_whole: bool = True,
    ) -> Iterator[Baseline]:
        """The baselines of one way to answer, those of all questions first."""
        right = {pipe: self._answers[pipe][answer] for pipe, answer in chosen.items()}
        n = {pipe: own.total() for pipe, own in self._answers.items()}
        for path, weights, papers in (
            (SCORE.path, self._score, self._scored),
            (QUESTION_ACC.path, self._accuracy, self._with_questions),
        ):
            worth = (weights[pair] for pair in sorted(chosen.items()))
            if is_whole:
                yield Baseline(
                    of=path,
                    key=key,
                    name=name,
                    value=ratio(sum(worth), papers),
                    n=papers,
                    how=f"{how}; the variants that the model found",
                )
        if is_whole:
            yield Baseline(
                of=f"pipeline.{TOTAL}.accuracy",
                key=key,
                name=name,
                value=ratio(sum(right.values()), sum(n.values())),
                n=sum(n.values()),
                how=how,
            )
        for pipe in pipelines:
            if pipe in chosen and pipe in n:
                yield Baseline(
                    of=f"pipeline.{pipe}.accuracy",
                    key=key,
                    name=name,
                    value=ratio(right[pipe], n[pipe]),
                    n=n[pipe],
                    how=how,
                )


def _folded(question: Question) -> str:
    """The expected answer; fields of a study question without case and blanks."""
    return (
        expected(question)
        if question.is_mcq
        else " ".join(expected(question).casefold().split())
    )


def _absent() -> str:
    return f"p={NOT_FOUND}, sig={NOT_FOUND}"
