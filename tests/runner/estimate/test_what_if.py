"""A recorded run as what a what-if replays.

Who plays whom in a what-if, and what it says of itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner import errors as e
from runner.errors import UsageError
from runner.estimate.simulation import RecordedAttempt, RecordedItem
from runner.estimate.what_if import (
    RecordedItems,
    ReplayCounts,
    WhatIf,
    endpoint_rate,
    output_limits,
    run_what_if,
)
from runner.job import Stage
from runner.money.prices import Price
from runner.options import RunOptions, options_from
from store.database import open_reader
from store.events import AttemptsAbandoned, Entry, Event, LimitObserved, TasksReopened
from store.log.sqlite import SqliteLog
from store.read.limits import ObservedLimits
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer

PRICE = Price(
    input_usd=1e-6, output_usd=1e-6, cached_input_usd=1e-6, cache_write_usd=1e-6
)


def _log(path: Path, *units: Sequence[Entry | Event]) -> Path:
    clock = FakeClock()

    async def write() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            for unit in units:
                clock.advance(1.0)
                await log.append(*unit)

    asyncio.run(write())
    return path


def _items(
    path: Path, *, name: str = "m-large", drops_refusals: bool = False
) -> tuple[list[RecordedItem], ReplayCounts]:
    census = ReplayCounts()
    with open_reader(path) as reader:
        items = RecordedItems(
            connection=reader,
            model="m-large",
            names={"m-large": name, "m-small": "m-small"},
            stages=("ask", "judge"),
            prices={name: PRICE, "m-small": None},
            max_tokens={"ask": 100},
            census=census,
            drops_refusals=drops_refusals,
        )
        return list(items), census


def _kinds(attempts: Sequence[RecordedAttempt]) -> list[type[e.AttemptError] | None]:
    return [a.error and type(a.error) for a in attempts]


def test_an_item_is_its_first_task_with_what_followed_by_stage(tmp_path: Path) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1)])],
        [started(1)],
        [
            answer(1, b"x"),
            completed(1),
            plan([task(2, stage="judge", root=1)], first=2),
        ],
        [started(2)],
        [answer(2, b"x"), completed(2)],
    )
    ((item,), census) = _items(path)
    (attempt,) = item.first.attempts
    assert attempt.duration_s == pytest.approx(1.0)
    assert (attempt.tokens_in, attempt.tokens_out) == (50, 7)
    assert attempt.cost_pico == 57_000_000
    assert item.first.worst_tokens == 160
    assert [trial.stage for trial in item.later] == ["judge"]
    assert (census.tasks, census.taken_after) == (2, 0)


def test_failures_are_kept_and_what_a_person_mended_is_not(tmp_path: Path) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1)])],
        [started(1), failed(1, error="AuthFailed")],
        [started(1, 2), failed(1, 2, error="RateLimited", retry_after_s=3.0)],
        [started(1, 3), failed(1, 3, error="Timeout")],
        [started(1, 4), answer(1, b"x", 4), completed(1, 4)],
    )
    (item,) = _items(path)[0]
    assert _kinds(item.first.attempts) == [e.RateLimited, e.Timeout, None]
    error = item.first.attempts[0].error
    assert error is not None
    assert error.retry_after_s == 3.0
    (item,) = _items(path, drops_refusals=True)[0]
    assert _kinds(item.first.attempts) == [e.Timeout, None]


def test_of_a_task_that_was_asked_anew_the_last_course_counts(tmp_path: Path) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1), task(2)])],
        [started(1), answer(1, b"x"), completed(1)],
        [TasksReopened(tasks=[1], by="someone")],
        [started(1, 2), answer(1, b"y", 2, tokens_in=99), completed(1, 2)],
        [started(2), answer(2, b"x", reask="no_list")],
        [started(2, 2), answer(2, b"y", 2), completed(2, 2)],
    )
    anew, reasked = _items(path)[0]
    assert [attempt.tokens_in for attempt in anew.first.attempts] == [99]
    assert len(reasked.first.attempts) == 2


def test_what_has_no_outcome_goes_like_what_has_one(tmp_path: Path) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1), task(2), task(3), task(4, skip="no text")])],
        [started(1), answer(1, b"x", tokens_in=11), completed(1)],
        [
            plan(
                [task(5, stage="judge", root=1), task(6, stage="judge", root=1)],
                first=5,
            )
        ],
        [started(5), answer(5, b"x", tokens_in=12), completed(5)],
        [started(2), AttemptsAbandoned(attempts=[(2, 1)])],
    )
    items, census = _items(path)
    assert len(items) == 3
    assert items[1] == items[2] == items[0]
    assert [t.attempts[0].tokens_in for t in items[0].later] == [12, 12]
    assert (census.tasks, census.taken_after, census.left_out) == (5, 3, 0)


def test_without_anything_to_go_by_open_tasks_are_left_out(tmp_path: Path) -> None:
    path = _log(tmp_path / "log.db", [RUN_STARTED, plan([task(1), task(2)])])
    items, census = _items(path)
    assert items == []
    assert census.left_out == 2


def test_a_model_may_stand_in_for_another(tmp_path: Path) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1), task(2, stage="judge", root=1, model="m-small")])],
        *[[started(n), answer(n, b"x"), completed(n)] for n in (1, 2)],
    )
    (item,) = _items(path, name="new")[0]
    assert item.first.model == "new"
    assert item.later[0].model == "m-small"
    assert item.later[0].attempts[0].cost_pico is None


def _seen(rpm: float | None) -> ObservedLimits:
    return ObservedLimits(
        model="m-large", concurrency=8, rpm=rpm, tpm=None, paused_until_us=None
    )


def test_a_rate_that_was_found_is_a_ceiling_one_set_by_hand_is_none(
    tmp_path: Path,
) -> None:
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1)])],
        [started(1), failed(1, error="RateLimited", latency_ms=4.0, retry_after_s=1.0)],
        [started(1, 2), failed(1, 2, error="Timeout", latency_ms=900.0)],
        [started(1, 3), answer(1, b"x", 3), completed(1, 3)],
    )
    with open_reader(path) as reader:
        assert endpoint_rate(reader, _seen(None), None) is None
        assert endpoint_rate(reader, _seen(600.0), 600.0) is None
        rate = endpoint_rate(reader, _seen(600.0), 3000.0)
    assert rate is not None
    assert rate.per_second == 10.0
    assert all(rate.refuses(5.0) is None for _ in range(10))
    refusal = rate.refuses(5.0)
    assert refusal is not None
    assert refusal.duration_s == pytest.approx(0.004)
    assert refusal.error is not None
    assert refusal.error.retry_after_s == pytest.approx(0.1)


def test_output_limits_are_those_of_the_requests(tmp_path: Path) -> None:
    first = Entry(event=started(1), payload=b'{"max_tokens": 512}')
    path = _log(
        tmp_path / "log.db",
        [RUN_STARTED, plan([task(1)])],
        [first, answer(1, b"x"), completed(1)],
    )
    with open_reader(path) as reader:
        assert output_limits(reader, ("ask", "judge")) == {"ask": 512}


JUDGED = replace(
    RUN_STARTED, models={"subject": ["m-large", "m-small"], "judge": ["openai/j"]}
)
THEN = options_from(
    {"model": ["m-large", "m-small"], "judge_model": "openai/j", "price": "1,1"}
)


class Judged(ToyJob):
    """Stages as in the sample log: asked, and judged by another."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = (
            Stage(name="ask", parse=self._text),
            Stage(name="judge", parse=self._text, role="judge"),
        )


def _done(number: int) -> list[Entry | Event]:
    return [started(number), answer(number, b"x"), completed(number)]


def _rehearsed(
    path: Path, now: RunOptions, *more: Sequence[Entry | Event], then: RunOptions = THEN
) -> WhatIf:
    """A run of two subjects with a verdict on each, played again."""

    async def write() -> None:
        clock = FakeClock()
        first = [task(1), task(2, model="m-small")]
        later = [task(n, stage="judge", root=n - 2, model="openai/j") for n in (3, 4)]
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            await log.append(JUDGED, plan(first), plan(later, first=3))
            for number in (1, 2, 3, 4):
                begun, *ended = _done(number)
                await log.append(begun)
                clock.advance(1.0)
                await log.append(*ended)
            for unit in more:
                await log.append(*unit)

    if not path.exists():
        asyncio.run(write())
    with open_reader(path) as reader:
        return run_what_if(reader, Judged(), then=then, now=now)


def test_each_model_plays_itself(tmp_path: Path) -> None:
    found = _rehearsed(tmp_path / "log.db", THEN)
    calls = {model: sums.calls for model, sums in found.outcome.models.items()}
    assert calls == {"m-large": 1, "m-small": 1, "openai/j": 2}
    assert found.outcome.seconds == pytest.approx(2.0, abs=0.01)
    assert found.cost_usd == pytest.approx(4 * 57e-6)
    assert not any("answers as" in said for said in found.assumes)


def test_new_subjects_and_judges_stand_in(tmp_path: Path) -> None:
    now = options_from(
        {
            "model": ["m-small", "openai/a", "openai/b"],
            "judge_model": "openai/k",
            "price": "1,1",
        }
    )
    found = _rehearsed(tmp_path / "log.db", now)
    calls = {model: sums.calls for model, sums in found.outcome.models.items()}
    assert calls == {"m-small": 1, "openai/a": 1, "openai/b": 1, "openai/k": 3}
    assert "openai/a answers as m-large did" in found.assumes
    assert "openai/k answers as openai/j did" in found.assumes


def test_an_unknown_price_leaves_the_sum_unknown(tmp_path: Path) -> None:
    now = options_from({"model": ["m-large"], "judge_model": "baseline/lexical"})
    found = _rehearsed(tmp_path / "log.db", now)
    assert found.costs_usd == {"m-large": None, "baseline/lexical": 0.0}
    assert found.cost_usd is None


def test_a_rate_that_was_found_is_said(tmp_path: Path) -> None:
    seen = LimitObserved(model="m-large", concurrency=8, in_flight=1, rpm=600.0)
    path = tmp_path / "log.db"
    found = _rehearsed(path, THEN, [seen])
    assert "m-large allows 600 requests a minute, as the run found" in found.assumes
    # the same figure, set by hand, is no discovery
    by_hand = THEN.model_copy(update={"rpm": 600.0})
    found = _rehearsed(path, THEN, then=by_hand)
    assert not any("as the run found" in said for said in found.assumes)


def test_open_tasks_are_counted_and_said(tmp_path: Path) -> None:
    open_ = plan([task(5), task(6)], first=5)
    found = _rehearsed(tmp_path / "log.db", THEN, [open_])
    assert "2 tasks without an outcome go like tasks that ended" in found.assumes
    assert found.outcome.models["m-large"].calls == 3


def test_a_run_without_calls_cannot_be_played_again(tmp_path: Path) -> None:
    async def write() -> None:
        async with await SqliteLog.create(
            tmp_path / "log.db",
            run_id="r1",
            config_sha256=b"",
            clock=FakeClock(),
            owner="tester",
        ) as log:
            await log.append(replace(JUDGED, imported=True), plan([task(1)]))

    asyncio.run(write())
    with (
        open_reader(tmp_path / "log.db") as reader,
        pytest.raises(UsageError, match="made no calls"),
    ):
        run_what_if(reader, Judged(), then=THEN, now=THEN)


def test_a_failure_that_is_unknown_to_this_code_is_an_error_of_the_server(
    tmp_path: Path,
) -> None:
    more = [
        plan([task(5)], first=5),
        started(5),
        failed(5, error="Eclipse"),
        started(5, 2),
        answer(5, b"x", 2),
        completed(5, 2),
    ]
    found = _rehearsed(tmp_path / "log.db", THEN, more)
    assert found.outcome.models["m-large"].calls == 3
