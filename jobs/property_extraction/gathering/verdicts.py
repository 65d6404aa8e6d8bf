"""One pass over the answers of a verification: what each model says of each pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from jobs.property_extraction.aliases.verdicts import HEURISTIC, Verdict
from jobs.property_extraction.answered import Choice
from jobs.property_extraction.answered import Verdict as Answered
from jobs.property_extraction.asking.questions import AUTO, Question
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.reading import read_verdict
from runner.job import Answer, Answers
from runner.messages import ParseFailure

STAGE = "verify"

EQUAL = "Exact string match (auto-verified)"
"""The reason of a match that nobody was asked about."""


def verdicts_of(dataset: Dataset, answers: Answers) -> Iterator[Verdict]:
    """The verdicts of every model and replicate, by task.

    A reply that cannot be read gives one for each of its pairs that decides nothing;
    what is not answered gives none, and so does a question that is asked no more.
    """
    for family in answers.families():
        for answer in family:
            question = dataset.questions.get(answer.task.key)
            if question is not None and answer.task.stage == STAGE:
                yield from verdicts_in(dataset, question, answer)


def verdicts_in(
    dataset: Dataset, question: Question, answer: Answer
) -> Iterator[Verdict]:
    """The verdicts of one answer on the pairs of its question."""
    if answer.skip == AUTO:
        for target in question.targets:
            yield Verdict(
                pred_name=question.pred_name,
                gt_name=target,
                is_match=True,
                reason=EQUAL,
                model=HEURISTIC,
            )
    if answer.chat is None:
        return
    parsed = read_verdict(dataset, answer.task, answer.chat)
    for place, target in enumerate(question.targets):
        match parsed:
            case Answered(is_match=is_match, reason=reason):
                said: bool | None = is_match
            case Choice(target=chosen, reason=reason):
                said = chosen == place
            case ParseFailure(reason=reason):
                said = None
            case _:
                assert_never(parsed)
        yield Verdict(
            pred_name=question.pred_name,
            gt_name=target,
            is_match=said,
            reason=reason,
            model=answer.task.model,
        )
