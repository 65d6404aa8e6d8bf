"""What was read from each reply, and whether it is right.

A second pass over the answers, made while the verdicts are written, so that none is
held. Each reply is judged by itself, as the model said it: no stage, threshold or
replicate changes it. Unclear is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.screening.gathering.records import STAGES, Screened
from jobs.screening.gathering.staged import read
from jobs.screening.judgement import Judgement
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import Verdict

TRUTH = ("exclude", "include")
"""By label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """One verdict for each answered task about a record; may be read again."""

    found: Screened
    answers: Answers

    def __iter__(self) -> Iterator[Verdict]:
        for family in self.answers.families():
            for answer in family:
                if answer.task.stage in STAGES:
                    own = _verdict(answer, self.found)
                    if own is not None:
                        yield own


def _verdict(answer: Answer, found: Screened) -> Verdict | None:
    """None of a record that is not asked for any more, and without a reply."""
    task = answer.task
    at = found.places.get(task.key)
    if at is None:
        return None
    expected = TRUTH[int(found.records.label[at])]
    value, correct, rule = "", None, ""
    match read(answer, 0).parsed:
        case Judgement() as said:
            p = "" if said.p_include is None else f" {said.p_include:.2f}"
            value = f"{said.decision}{p}"
            if said.decision != "unclear":
                correct = said.decision == expected
            rule = ", ".join((said.rule, *said.noticed))
        case ParseFailure(reason=reason):
            rule = reason
        case None:
            return None
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value=value,
        expected=expected,
        correct=correct,
        rule=rule,
    )
