"""What the tables of tasks and of attempts say in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from store.read.tasks import AttemptRow
from store.scoring import Score
from tests.store.samples import answered, failed
from tests.tui.fake_tasks import FakeTasks
from tui.render.tasks import attempt_columns, next_reason, score
from tui.sources.tasks import AttemptLine

ROW = AttemptRow(
    attempt=1,
    started_us=0,
    ended_us=1,
    started_seq=1,
    ended_seq=2,
    outcome=None,
)
ANSWER = answered(1)


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (None, "-"),
        (Score(verdicts=2, judged=0, right=0), "-"),
        (Score(verdicts=1, judged=1, right=1), "right"),
        (Score(verdicts=2, judged=1, right=0), "wrong"),
        (Score(verdicts=9, judged=4, right=3), "3/4"),
    ],
)
def test_a_score_is_a_word_or_how_many_are_right(
    found: Score | None, word: str
) -> None:
    assert score(replace(FakeTasks(9).line(2), score=found)) == word


@pytest.mark.parametrize(
    ("changed", "is_lost", "outcome", "why"),
    [
        ({}, False, "none yet", ""),
        ({}, True, "unknown", "its process ended before an answer"),
        ({"outcome": ANSWER}, False, "answered", ""),
        ({"outcome": replace(ANSWER, cached=True)}, False, "cached", ""),
        (
            {"outcome": replace(ANSWER, reask="no_json"), "fault": "a: odd"},
            False,
            "no_json",
            "re-ask · a: odd",
        ),
        (
            {"outcome": ANSWER, "unparsed": "truncated"},
            False,
            "truncated",
            "final, not asked again",
        ),
        (
            {"outcome": failed(1, status=429, retry_after_s=20.0, retry_in_s=24.0)},
            False,
            "Overloaded",
            "429 · retry-after 20 s · again after 24 s",
        ),
        (
            {"outcome": failed(1, retry_in_s=None, message="no")},
            False,
            "Overloaded",
            "503 · final · no",
        ),
    ],
)
def test_an_attempt_says_its_outcome_and_why_another_followed(
    changed: dict[str, object], is_lost: bool, outcome: str, why: str
) -> None:
    row = replace(ROW, **changed)  # type: ignore[arg-type]
    line = AttemptLine(row=row, waited_s=None, is_lost=is_lost)
    texts = {column.title: column.text(line) for column in attempt_columns()}
    assert texts["outcome"] == outcome
    assert texts["waited"] == "-"
    assert next_reason(line).startswith(why)
    assert bool(next_reason(line)) is bool(why)
