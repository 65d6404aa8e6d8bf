"""The answers of a verification, by model and pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.property_extraction.aliases.verdicts import (
    HEURISTIC,
    Names,
    Ruling,
    Verdict,
    majority,
)
from jobs.property_extraction.asking.questions import AUTO, DONE
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.verdicts import STAGE, verdicts_in
from jobs.property_extraction.inputs.candidates import Pair
from runner import scorecard
from runner.job import Answer, Answers

SAID: Mapping[bool | None, str] = {True: "match", False: "no match", None: "undecided"}
"""A verdict in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one model says."""

    model: str
    verdicts: tuple[Verdict, ...]  #: of every replicate, by task
    rulings: Mapping[Names, Ruling]  #: of pairs that were answered

    @property
    def unread(self) -> int:
        """Verdicts whose reply could not be read."""
        return sum(verdict.is_match is None for verdict in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All that a run says of its pairs."""

    pairs: tuple[Pair, ...]  #: in the order of the questions
    equal: frozenset[Names]  #: names that are one but for case: nobody was asked
    known: int  #: pairs that had a verdict before
    columns: tuple[Column, ...]  #: in the run's order of models
    rulings: Mapping[Names, Ruling]  #: of all models together
    outcomes: tuple[scorecard.Verdict, ...]  #: of each answer, for the monitor
    missing: int  #: answers that are due and not there
    stale: int  #: answers that no question asks for


def verification_of(dataset: Dataset, answers: Answers) -> Verification:
    """One pass over a run's answers."""
    verdicts: dict[str, list[Verdict]] = {model: [] for model in answers.models}
    outcomes: list[scorecard.Verdict] = []
    ended = stale = 0
    for family in answers.families():
        for answer in family:
            question = dataset.questions.get(answer.task.key)
            if question is None or answer.task.stage != STAGE:
                stale += answer.reply is not None
                continue
            ended += not answer.is_open
            found = list(verdicts_in(dataset, question, answer))
            said = [each for each in found if each.model != HEURISTIC]
            verdicts.setdefault(answer.task.model, []).extend(said)
            if found:
                outcomes.append(_outcome(answer, found))
    questions = dataset.questions.values()
    planned = len(questions) * len(answers.models) * answers.replicates
    return Verification(
        pairs=tuple(pair for question in questions for pair in question.pairs),
        equal=frozenset(
            (question.pred_name, target)
            for question in questions
            if question.skip == AUTO
            for target in question.targets
        ),
        known=sum(len(own.pairs) for own in questions if own.skip == DONE),
        columns=tuple(
            Column(model=model, verdicts=tuple(own), rulings=majority(own))
            for model, own in verdicts.items()
        ),
        rulings=majority(verdict for own in verdicts.values() for verdict in own),
        outcomes=tuple(outcomes),
        missing=0 if answers.imported else planned - ended,
        stale=stale,
    )


def _outcome(answer: Answer, found: list[Verdict]) -> scorecard.Verdict:
    """What was read from one answer: of a choice, its target."""
    unread = next((each.reason for each in found if each.is_match is None), "")
    chosen = [each.gt_name for each in found if each.is_match]
    if len(found) == 1 or unread:
        value = SAID[found[0].is_match]
    else:
        value = chosen[0] if chosen else "none"
    return scorecard.Verdict(
        task=answer.task.number,
        model=answer.task.model,
        stage=answer.task.stage,
        key=answer.task.key,
        value=value,
        expected="",
        correct=None,
        rule=unread or answer.skip or "verdict",
    )
