"""What the stages of one record come to: the last one with a readable reply decides.

An unreadable, failed or skipped stage never excludes: the record stays alive, and the
decision of the stage before it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jobs.screening.decisions import (
    EXCLUDE,
    FAILED,
    INCLUDE,
    MISSING,
    SKIPPED,
    UNCLEAR,
    UNPARSED,
)
from jobs.screening.judgement import Decision, Judgement
from jobs.screening.parsing.screen import parse_screen, score_alone
from runner.job import Answer
from runner.messages import ParseFailure

OUTCOME_OF: Mapping[Decision, int] = {
    "include": INCLUDE,
    "exclude": EXCLUDE,
    "unclear": UNCLEAR,
}

EXCLUDED_EARLIER = "excluded_earlier"
NOT_REACHED = frozenset({EXCLUDED_EARLIER, "missing"})
"""Skips that say that a stage was never due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage of one record."""

    stage: int  #: place among the stages
    parsed: Judgement | ParseFailure | None = None  #: None: no reply
    error: str | None = None
    p: float | None = None  #: of a reply that states a score and no decision
    skip: str | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What the stages of one record come to, with one model once asked."""

    outcome: int
    p: float | None = None
    stage: int = -1  #: that decided; -1: none
    ended: int  #: stages that were passed
    latest: int  #: outcome of the last stage that was due
    reason_code: str = ""
    reason: str = ""
    skip: str = ""
    replies: int = 0
    noticed: tuple[str, ...] = field(default=())


def read(answer: Answer, stage: int) -> Step:
    """One answer, read by the present rules."""
    reply = answer.chat
    parsed = None if reply is None else parse_screen(reply)
    has_score = isinstance(parsed, ParseFailure) and parsed.reason == "score_only"
    return Step(
        stage=stage,
        parsed=parsed,
        p=score_alone(reply.text) if reply is not None and has_score else None,
        error=answer.error,
        skip=answer.skip,
        is_open=answer.is_open,
    )


def course(steps: Iterable[Step], last: int, *, has_ended: bool) -> Course:
    """What the steps of a record come to.

    Args:
        steps: at most one a stage, in any order; none after the one that ended it.
        last: place of the last stage that there is.
        has_ended: whether the last of the steps excluded it for good. Without that it
            is alive, whether a later stage failed or has yet to come.
    """
    due = sorted(steps, key=lambda own: own.stage)
    reached = [own for own in due if own.skip not in NOT_REACHED and not own.is_open]
    readable = [
        (own, own.parsed) for own in reached if isinstance(own.parsed, Judgement)
    ]
    skip = next((own.skip for own in reversed(reached) if own.skip is not None), "")
    noticed = tuple(word for own in reached for word in _noticed(own.parsed))
    replies = sum(own.parsed is not None for own in reached)
    latest = _outcome(due[-1]) if due else MISSING
    if not readable:
        return Course(
            outcome=_without_decision(reached),
            p=next((own.p for own in reversed(reached) if own.p is not None), None),
            ended=last,
            latest=latest,
            skip=skip,
            replies=replies,
            noticed=noticed,
        )
    deciding, said = readable[-1]
    return Course(
        outcome=OUTCOME_OF[said.decision],
        p=said.p_include,
        stage=deciding.stage,
        ended=deciding.stage if has_ended else last,
        latest=latest,
        reason_code=said.reason_code,
        reason=said.reason,
        skip=skip,
        replies=replies,
        noticed=noticed,
    )


def is_exclusion(step: Step) -> bool:
    """Whether a stage excluded its record."""
    return _outcome(step) == EXCLUDE


def _outcome(step: Step) -> int:
    """What one stage came to."""
    match step.parsed:
        case Judgement(decision=decision):
            return OUTCOME_OF[decision]
        case ParseFailure():
            return UNPARSED
        case None:
            if step.error is not None:
                return FAILED
            return MISSING if step.skip in {None, *NOT_REACHED} else SKIPPED


def _without_decision(reached: list[Step]) -> int:
    """Why nothing was decided: by what came nearest to it."""
    return min((_outcome(own) for own in reached), default=MISSING)


def _noticed(parsed: Judgement | ParseFailure | None) -> tuple[str, ...]:
    if isinstance(parsed, ParseFailure):
        return (f"parse.{parsed.reason}",)
    return () if parsed is None else parsed.noticed
