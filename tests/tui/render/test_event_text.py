"""An event is said in words, what matters first, and nothing of it is lost in full.

What the tables of tasks and of attempts say in words.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import (
    AttemptsAbandoned,
    Event,
    LimitObserved,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
    UnknownEvent,
)
from store.read.tasks import AttemptRow
from store.verdicts import Score, StoredVerdict
from tests.replacing import replace
from tests.store.samples import ASIDE, RUN_STARTED, answered, completed, failed, started
from tests.tui.fake_tasks import FakeTasks, scored
from tui.render.event_text import event_line, facts_text
from tui.render.tasks import (
    attempt_columns,
    next_reason,
    outcome,
    problem,
    score_text,
    value,
)
from tui.sources.tasks import AttemptLine

SAID: tuple[tuple[Event | UnknownEvent, str], ...] = (
    (RUN_STARTED, "sample-job 1 asks m-large, m-small · siftlog 0.1.0"),
    (
        RunResumed(code_sha256="", settings="{}", unknown=1, budget_usd=5.0),
        "resumed · 1 attempt of unknown outcome · budget $5.00",
    ),
    (RunPaused(by="ops", paused=True), "the run paused, by ops"),
    (RunPaused(by="ops", paused=False, stage="ask"), "ask goes on, by ops"),
    (
        RunDrained(by="budget", why="the budget is reached", open=1_204),
        "the budget is reached · by budget · 1,204 open",
    ),
    (
        RunFinished(completed=5, failed=1, skipped=0),
        "5 done, 1 failed, 0 skipped",
    ),
    (
        TasksPlanned(first=1, count=200, consumed=200, exhausted=True),
        "200 tasks: 1 to 200 · the plan is whole",
    ),
    (TasksPlanned(first=6, count=0, consumed=5), "no more tasks"),
    (
        TasksReopened(tasks=list(range(1, 8)), by="ops"),
        "reopened by ops: tasks 1, 2, 3, 4, 5 and 2 more",
    ),
    (TaskSkipped(task=4, reason="no text"), "no text"),
    (completed(1), "parsed"),
    (completed(1, unparsed="truncated"), "unparsed: truncated"),
    (
        TaskFailed(task=2, attempt=4, error="Overloaded"),
        "Overloaded in attempt 4, the last",
    ),
    (started(1, 2), "attempt 2"),
    (
        answered(1, 2, cost_usd=0.0069, tokens_in=2_340, latency_ms=6_200.0),
        "$0.0069 · 2,340 in, 7 out · 6.2 s · stop · attempt 2",
    ),
    (
        answered(1, reask="no_list", tokens_in=None, tokens_out=None, possible_usd=0.5),
        "refused: no_list · ? · 0.10 s · stop · $0.5000 may be billed",
    ),
    (
        failed(2, 3, latency_ms=320.0, message="busy"),
        "Overloaded: busy · again after 2.5 s · status 503 · attempt 3 · after 0.32 s",
    ),
    (
        failed(2, retry_in_s=None, status=None),
        "Overloaded: the endpoint is too busy · final · attempt 1 · after 0.03 s",
    ),
    (
        AttemptsAbandoned(attempts=[(1, 1), (2, 1)], hold=True),
        "2 attempts of unknown outcome · held for the user · tasks 1, 2",
    ),
    (
        LimitObserved(model="m", concurrency=8, in_flight=3, rpm=60.0, tpm=5_000.0),
        "m: 8 calls at a time · 60 requests/min · 5 k tokens/min",
    ),
    (
        UnknownEvent(kind="new", version=7, facts=b'{"a": 1}'),
        'version 7 is not known to this siftlog: {"a": 1}',
    ),
)


@pytest.mark.parametrize(("event", "line"), SAID)
def test_a_line_says_what_matters_first(event: Event | UnknownEvent, line: str) -> None:
    assert event_line(event) == line


def test_commands_and_scorings_are_said_too() -> None:
    lines = [event_line(event) for event in ASIDE[-4:]]
    assert lines == [
        "drain by someone · {}",
        "no · retry by someone",
        "no further task is started",
        "scoring 1 of events up to 1 · job version 1",
    ]


def test_all_facts_of_an_event_are_there_in_full() -> None:
    for event in (*(event for event, _ in SAID), *ASIDE):
        if not isinstance(event, UnknownEvent):
            text = facts_text(event)
            assert all(name in text for name in event.__struct_fields__)
            assert "null" not in text


@given(st.binary(max_size=60))
def test_what_a_later_siftlog_wrote_is_shown_as_it_stands(facts: bytes) -> None:
    event = UnknownEvent(kind="new", version=2, facts=facts)
    assert event_line(event)
    assert facts_text(event) or not facts


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
        (Score(verdicts=9, judged=4, right=3), "3/4 right"),
    ],
)
def test_a_score_is_a_word_or_how_many_are_right(
    found: Score | None, word: str
) -> None:
    line = replace(FakeTasks(9).line(1), score=found)
    assert outcome(line) == word
    assert problem(line) == word
    assert problem(replace(line, recovered="Overloaded 503")) == (
        "Overloaded 503, recovered"
    )


def test_a_p_value_is_shown_with_one_sign() -> None:
    stored = "p== 0.03, sig=yes"
    score = Score(verdicts=1, judged=1, right=1, value=stored)
    line = replace(FakeTasks(9).line(1), score=score)
    assert value(line) == "p=0.03, sig=yes"
    detail = asyncio.run(FakeTasks(9).detail(1))
    assert detail is not None
    verdict = StoredVerdict(
        task=1, value="p=< 0.01, sig=yes", expected=stored, correct=False, rule="r"
    )
    text = score_text(replace(detail, scored=(scored(2, verdict),)))
    assert "value      p<0.01, sig=yes" in text
    assert "reference  p=0.03, sig=yes" in text


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
            "final, not retried",
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
