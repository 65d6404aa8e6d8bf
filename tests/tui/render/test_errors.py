"""The rows of the Run screen's tables, without how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from store.fold_state import FailureOutcome
from store.read.limits import ObservedLimits
from store.read.observed_work import Break
from store.read.status import Pause
from store.read.usage import FailureRow
from store.task import TaskState
from tests.tui.seats import listed
from tests.tui.sights import HOSTILE, snapshot, with_signs, with_status
from tui.render.errors import error_rows as rows_of
from tui.render.errors import errors, last_words
from tui.render.glyphs import ASCII, UNICODE
from tui.render.layout import PanelColumn, Room, table_lines
from tui.render.models import limited_by, models, term
from tui.render.progress import stage_rows
from tui.render.run_panels import RUN_PANELS, header, overview
from tui.render.sentences import ending, sentence
from tui.screens.runs import about, matches, newest, summary
from tui.sources.run_snapshot import (
    US_PER_MINUTE,
    LastFailure,
    ReadProblem,
    RunSnapshot,
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    return snapshot(tmp_path_factory.mktemp("rows") / "r1")


def with_failures(seen: RunSnapshot, *rows: FailureRow) -> RunSnapshot:
    return replace(seen, facts=replace(seen.facts, failures=rows))


def failure(
    seen: RunSnapshot, ago: int, outcome: FailureOutcome, n: int = 1
) -> FailureRow:
    """One so many minutes ago."""
    return FailureRow(
        t=seen.now_us // US_PER_MINUTE - ago,
        error="RateLimited",
        stage="ask",
        model="m-large",
        outcome=outcome,
        n=n,
        last_task=7,
    )


def test_errors_are_counted_lately_and_in_all_with_what_becomes_of_them(
    live: RunSnapshot,
) -> None:
    found = {row.error: row for row in rows_of(live)}
    overloaded = found["Overloaded"]
    assert (overloaded.lately, overloaded.all) == (3, 3)
    assert (overloaded.next, overloaded.goal) == ("retried, 1 final", "err:Overloaded")
    assert (found["no_list"].next, found["no_list"].all) == ("re-ask", 1)
    assert overloaded.task == 6


def test_only_the_last_ten_minutes_are_lately(live: RunSnapshot) -> None:
    rows = [failure(live, ago, FailureOutcome.RETRIED, n=5) for ago in (0, 9, 10)]
    seen = with_failures(live, *rows)
    found = {row.error: row.lately for row in rows_of(seen)}
    assert found == {"RateLimited": 10, "Overloaded": 0, "no_list": 0}
    assert rows_of(seen)[0].error == "RateLimited"


def test_a_rate_of_failures_leaves_out_the_time_between_two_sessions(
    live: RunSnapshot,
) -> None:
    now_us = live.now_us // US_PER_MINUTE * US_PER_MINUTE + US_PER_MINUTE // 2
    away = Break(
        begin_us=now_us - 1440 * US_PER_MINUTE, end_us=now_us - 4 * US_PER_MINUTE
    )
    resumed = with_status(
        live, created_us=now_us - 2880 * US_PER_MINUTE, breaks=(away,)
    )
    resumed = replace(resumed, now_us=now_us)
    seen = with_failures(resumed, failure(resumed, 1, FailureOutcome.RETRIED, n=12))
    assert rows_of(seen)[0].a_minute == pytest.approx(3.0)


def test_of_an_older_log_the_last_minutes_are_unknown_and_never_zero(
    live: RunSnapshot,
) -> None:
    older = replace(live, facts=replace(live.facts, failures=None))
    assert {row.lately for row in rows_of(older)} == {None}
    room = Room(width=70, height=9, glyphs=UNICODE)
    line = errors(older, room).plain.split("\n")[1]
    assert line.split()[1:3] == ["-", "-"]


def test_a_failure_that_repeats_itself_is_told_with_its_count(
    live: RunSnapshot,
) -> None:
    last = LastFailure(
        at_us=live.now_us - 2_000_000,
        task=1,
        error="Timeout",
        message="no answer in 60 s",
        times=1149,
    )
    seen = replace(live, facts=replace(live.facts, last_failure=last))
    assert last_words(seen) == "last 2.0 s ago, 1,149 times the same: no answer in 60 s"
    stalled = with_signs(seen, phase_us=live.now_us - 600_000_000, success_us=None)
    assert "Timeout 1,149 times in a row" in sentence(stalled)
    assert ending(stalled) == "no success 10 min"


def test_stages_say_what_waits_and_when_the_next_retry_is_due(
    live: RunSnapshot,
) -> None:
    first, judge = stage_rows(live)
    assert (first.stage, judge.stage) == ("ask", "judge")
    assert first.states[TaskState.WAITING] == 1
    assert first.retry_s == pytest.approx(2.5, abs=0.1)
    assert judge.retry_s is None
    assert first.time_left() == "1 s"


def test_every_row_leads_to_its_tasks(live: RunSnapshot) -> None:
    goals = {part.name: list(part.goals(live)) for part in RUN_PANELS}
    assert goals["stages"] == ["stage:ask", "stage:judge"]
    assert goals["models"] == ["model:m-large", "model:m-small"]
    assert goals["errors"] == ["err:Overloaded", "reason:no_list"]
    assert goals["oldest"] == ["task:5"]
    assert goals["cost"] == []


@pytest.mark.parametrize(
    ("value", "said"),
    [("ask", "stage:ask"), ("a b", 'stage:"a b"'), ('a"b', "stage:*"), ("", "stage:*")],
)
def test_a_name_becomes_a_term_that_can_be_read(value: str, said: str) -> None:
    assert term("stage", value) == said


def test_calls_at_a_time_hold_a_run_back_too(live: RunSnapshot) -> None:
    limits = ObservedLimits(
        model="m-large", concurrency=1, rpm=None, tpm=None, paused_until_us=None
    )
    assert limited_by(with_status(live, limits=(limits,))) == (
        "calls at a time of m-large"
    )
    # raising what the user allows would change nothing
    lowered = replace(limits, ceiling=4)
    assert limited_by(with_status(live, limits=(lowered,))) == (
        "calls at a time of m-large (1 of at most 4)"
    )


def test_only_the_model_that_ends_last_holds_a_run_back(live: RunSnapshot) -> None:
    forecast = live.forecast
    assert forecast is not None
    assert forecast.models["m-large"] > forecast.models["m-small"]
    large, small = (
        ObservedLimits(model=m, concurrency=n, rpm=None, tpm=None, paused_until_us=None)
        for m, n in (("m-large", 8), ("m-small", 1))
    )
    queues = tuple(
        replace(queue, states={**queue.states, TaskState.RUNNING: 1})
        for queue in live.status.queues
    )
    seen = with_status(live, limits=(large, small), queues=queues)
    assert limited_by(seen) == ""


def test_how_to_go_on_is_said_once(live: RunSnapshot) -> None:
    drained = with_signs(live, phase="run_drained", phase_by="operator")
    whys = ("Interrupted; continue with: siftlog resume r1", "a machine's time is up")
    said = [sentence(with_status(drained, why=why)) for why in whys]
    assert said == [whys[0], "continue with 'siftlog resume r1' · " + whys[1]]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("cursor", [None, 0, 7, 19])
def test_a_table_shows_the_rows_around_its_cursor(
    glyphs: object, cursor: int | None
) -> None:
    signs = UNICODE if glyphs is UNICODE else ASCII
    room = Room(width=30, height=6, glyphs=signs, has_lead=True, cursor=cursor)
    rows: Sequence[Sequence[str]] = [[f"row {at}"] for at in range(20)]
    head, *shown, last = table_lines([PanelColumn("what", 9)], rows, room).plain.split(
        "\n"
    )
    assert head.split() == ["what"]
    assert len(shown) == 4
    marked = [line for line in shown if line.startswith(signs.cursor)]
    assert [line.split()[-1] for line in marked] == (
        [] if cursor is None else [str(cursor)]
    )
    assert last.strip() == "and 16 more" if cursor is None else last.endswith("of 20")


def test_runs_are_sorted_counted_and_found_by_their_state(live: RunSnapshot) -> None:
    runs = [
        listed("over", with_signs(live, phase="run_finished")),
        listed("bad", ReadProblem(sentence="it cannot be read")),
        listed("new", None),
        listed("stuck", with_signs(live, paused_by=HOSTILE)),
        listed("busy", live),
    ]
    older = with_status(live, created_us=live.created_us - 1)
    by_start = newest([*runs, listed("older", older)])
    names = [each.folder.run_id for each in by_start]
    assert names[-3:] == ["older", *(n for n in names if n in {"bad", "new"})]
    assert set(names[:3]) == {"over", "stuck", "busy"}
    assert summary(runs) == "1 live · 1 paused · 1 finished · 1 unread · 1 unreadable"
    assert [each.folder.run_id for each in runs if matches(each, "PAUSED st")] == [
        "stuck"
    ]
    grouped = listed("one", with_status(live, group="march"))
    assert [matches(each, "MARCH") for each in (grouped, runs[-1])] == [True, False]
    assert about(grouped, 80)[0] == "one · sample-job 1 · group march"
    lines = about(runs[-1], 160)
    assert lines[0] == "busy · sample-job 1"
    assert lines[1].startswith(
        "2 tasks done · 8 remaining · failed 1 (12.5 %) · waiting 1"
    )
    # no part is cut within its figures
    narrow = about(runs[-1], len(lines[1]) - 1)[1]
    assert narrow
    assert set(narrow.split(" · ")) < set(lines[1].split(" · "))


def test_the_key_that_lifts_a_pause_is_named_and_the_model_says_paused(
    live: RunSnapshot,
) -> None:
    pause = Pause(stage=None, model="x/m-large", by="ops")
    seen = with_status(live, pauses=(pause,))
    room = Room(width=80, height=24, glyphs=UNICODE)
    third = header(seen, room).plain.split("\n")[2]
    assert third == "paused: model x/m-large (by ops); P resumes it"
    narrow = header(seen, replace(room, width=30)).plain.split("\n")[2]
    assert narrow.startswith("P resumes · paused: model")
    read_only = header(seen, room, is_read_only=True).plain.split("\n")[2]
    assert "'siftlog resume r1' resumes it" in read_only
    held = with_status(live, pauses=(replace(pause, model=None),))
    assert models(held, room).plain.count("paused") == 2
    assert "paused" not in models(live, room).plain


def test_the_overview_counts_unparsed_replies(live: RunSnapshot) -> None:
    text = overview(live, Room(width=80, height=20, glyphs=UNICODE)).plain
    assert "replies: 2 · unparsed 0" in text or "replies: 2 · unparsed 1" in text


def test_messages_are_wrapped_into_free_lines(live: RunSnapshot) -> None:
    failure = LastFailure(
        at_us=live.now_us, task=6, error="ServerError", message="word " * 30, times=1
    )
    seen = replace(live, facts=replace(live.facts, last_failure=failure))
    text = errors(seen, Room(width=78, height=18, glyphs=UNICODE)).plain
    assert text.count("word") == 30
    short = errors(seen, Room(width=78, height=5, glyphs=UNICODE)).plain
    assert len(short.split("\n")) <= 5
