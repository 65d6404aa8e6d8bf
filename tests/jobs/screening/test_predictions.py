"""Stages of a record: what decides, and what keeps it alive."""

from __future__ import annotations

import pytest

from jobs.screening.data import Decision, ScreeningJudgement
from jobs.screening.decisions import (
    EXCLUDE,
    FAILED,
    INCLUDE,
    MISSING,
    OUTCOMES,
    SKIPPED,
    UNCLEAR,
    UNPARSED,
)
from jobs.screening.predictions import (
    StageAnswer,
    combine_stages,
    join_models,
    join_replicates,
)
from runner.messages import ParseFailure
from tests.jobs.screening.told_decisions import Said, sheet

LAST = 1


def said(stage: int, decision: Decision, p: float) -> StageAnswer:
    return StageAnswer(
        stage=stage, parsed=ScreeningJudgement(decision=decision, p_include=p)
    )


UNREAD = StageAnswer(stage=1, parsed=ParseFailure(reason="no_decision"))
BROKEN = StageAnswer(stage=1, error="overloaded")
EARLIER = StageAnswer(stage=1, skip="excluded_earlier")


@pytest.mark.parametrize(
    ("steps", "outcome", "p", "ended"),
    [
        ([said(0, "include", 0.8), said(1, "exclude", 0.2)], EXCLUDE, 0.2, 1),
        ([said(0, "include", 0.8), UNREAD], INCLUDE, 0.8, 1),
        ([said(0, "unclear", 0.5), BROKEN], UNCLEAR, 0.5, 1),
        (
            [said(0, "exclude", 0.3), StageAnswer(stage=1, is_open=True)],
            EXCLUDE,
            0.3,
            1,
        ),
        ([said(0, "exclude", 0.3), EARLIER], EXCLUDE, 0.3, 1),
        (
            [StageAnswer(stage=0, parsed=ParseFailure(reason="empty")), BROKEN],
            UNPARSED,
            None,
            1,
        ),
        ([StageAnswer(stage=0, error="timeout")], FAILED, None, 1),
        ([StageAnswer(stage=0, skip="too_long")], SKIPPED, None, 1),
        ([StageAnswer(stage=0, is_open=True)], MISSING, None, 1),
        ([], MISSING, None, 1),
    ],
)
def test_the_last_readable_stage_decides_and_nothing_else_excludes(
    steps: list[StageAnswer], outcome: int, p: float | None, ended: int
) -> None:
    for order in (steps, steps[::-1]):
        found = combine_stages(order, LAST, has_ended=False)
        assert (found.outcome, found.p, found.ended) == (outcome, p, ended)


def test_only_an_end_ranks_below_those_that_went_on() -> None:
    found = combine_stages([said(0, "exclude", 0.05)], LAST, has_ended=True)
    assert (found.outcome, found.ended, found.latest) == (EXCLUDE, 0, EXCLUDE)
    waiting = [said(0, "exclude", 0.3), StageAnswer(stage=1, is_open=True)]
    for steps, latest in (
        (waiting, MISSING),
        ([said(0, "exclude", 0.3), BROKEN], FAILED),
        ([said(0, "exclude", 0.3), UNREAD], UNPARSED),
        ([said(0, "exclude", 0.3), StageAnswer(stage=1, skip="too_long")], SKIPPED),
    ):
        found = combine_stages(steps, LAST, has_ended=False)
        assert (found.outcome, found.ended, found.latest) == (EXCLUDE, 1, latest)


def columns(*words: str) -> list[list[Said]]:
    """What each model says of one record a letter: i, e, u, or - for nothing."""
    names = {"i": "include", "e": "exclude", "u": "unclear", "-": "unparsed"}
    return [
        [("r", str(at), "included", names[letter], 0.5) for at, letter in enumerate(w)]
        for w in words
    ]


def joined(rule: str, *words: str) -> list[str]:
    first, *more = columns(*words)
    own = sheet(first, *more).decisions
    found = (
        join_replicates("m", own) if rule == "replicates" else join_models(rule, own)  # type: ignore[arg-type]
    )
    return [OUTCOMES[outcome] for outcome in found.outcome.tolist()]


def test_replicates_join_by_majority_and_a_tie_is_unclear() -> None:
    assert joined("replicates", "iiiei-", "iee-u-", "eiu---") == [
        "include",
        "include",
        "unclear",
        "exclude",
        "unclear",
        "unparsed",
    ]


def test_ensembles_include_by_any_most_or_all_of_their_models() -> None:
    words = ("iiie", "ieie", "eeiu")
    assert joined("any", *words) == ["include", "include", "include", "exclude"]
    assert joined("majority", *words) == ["include", "exclude", "include", "exclude"]
    assert joined("all", *words) == ["exclude", "exclude", "include", "exclude"]
